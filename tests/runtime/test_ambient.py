"""`publish` and `current_turn` find the turn of whatever code runs, wherever it runs."""

from typing import Any

from acp_integration import current_turn, publish


async def test_publish_finds_the_turn_in_child_tasks_and_threads(connect: Any) -> None:
    async with connect("AmbientAgent") as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "x")
        await peer.write(prompt)
        assert (await peer.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert peer.texts(session) == ["from the handler", "from a child task", "from a thread", "the end"]


async def test_outside_a_turn_publish_succeeds_and_sends_nothing() -> None:
    await publish("nobody hears it")
    publish("nor this")
    assert current_turn() is None
