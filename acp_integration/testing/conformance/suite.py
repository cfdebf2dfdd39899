"""What every way of serving an agent must do alike. Star-import it into a test module that names its ``CELLS``."""

import json
from typing import Any

import anyio
import pytest

from acp_integration.testing.conformance.cells import Host
from acp_integration.testing.conformance.peer import RawPeer, text_of

ALLOW = {"outcome": {"outcome": "selected", "optionId": "y"}}
REJECT = {"outcome": {"outcome": "selected", "optionId": "n"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


def texts(peer: RawPeer, session: str) -> list[str]:
    """The texts of a session's message chunks."""
    return [text for update in peer.updates(session) if (text := text_of(update)) is not None]


@pytest.mark.smoke
async def test_a_turn_streams_its_updates_in_order_before_its_answer(connect: Host) -> None:
    """Fifty updates, then the answer."""
    async with connect() as peer:
        session = await peer.new_session()
        answer = await peer.prompt(session, "stream:50")
        assert answer["result"]["stopReason"] == "end_turn"
        assert len(peer.updates(session)) == 50
        assert peer.log[-1] is answer


async def test_initialize_answers_with_the_integer_version_1(connect: Host) -> None:
    """Whatever version the client speaks."""
    for version in (1, 99):
        async with connect(initialize=False) as peer:
            answer = await peer.call("initialize", protocolVersion=version, clientCapabilities={})
            assert answer["result"]["protocolVersion"] == 1
            assert set(answer) == {"jsonrpc", "id", "result"}


async def test_every_session_has_an_id_of_its_own(connect: Host) -> None:
    """Also across connections."""
    async with connect() as one, connect() as other:
        sessions = [await peer.new_session() for peer in (one, other, one, other)]
    assert len(set(sessions)) == 4
    assert all(sessions)


@pytest.mark.smoke
async def test_two_sessions_of_a_connection_run_at_once_without_cross_talk(connect: Host) -> None:
    """While one waits, the other is served."""
    async with connect() as peer:
        waiting, running = await peer.new_session(), await peer.new_session()
        turn = await peer.start_prompt(waiting, "wait_for_cancel")
        await peer.update(waiting, "waiting")
        await peer.prompt(running, "hello")
        assert texts(peer, running) == ["echo: hello"]
        assert texts(peer, waiting) == ["waiting"]
        await peer.notify("session/cancel", sessionId=waiting)
        assert (await peer.answer_to(turn))["result"]["stopReason"] == "cancelled"


async def test_twenty_sessions_at_once_lose_and_mix_nothing(connect: Host) -> None:
    """Each has its own updates and its own answer behind them."""
    async with connect() as peer:
        sessions = [await peer.new_session() for _ in range(20)]
        turns = {session: await peer.start_prompt(session, "stream:20") for session in sessions}
        for session, turn in turns.items():
            answer = await peer.answer_to(turn)
            assert len([f for f in peer.log[: peer.log.index(answer)] if f in peer.updates(session)]) == 20


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (ALLOW, "permission:selected:y"),
        (REJECT, "permission:selected:n"),
        (CANCELLED, "permission:cancelled"),
    ],
)
async def test_a_permission_is_asked_for_and_its_answer_reaches_the_turn(
    connect: Host, decision: dict[str, Any], text: str
) -> None:
    """Inside the turn that waits for it."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "perm")
        question = await peer.question("session/request_permission")
        assert question["params"]["sessionId"] == session
        assert [option["optionId"] for option in question["params"]["options"]] == ["y", "n"]
        await peer.answer(question, decision)
        assert (await peer.answer_to(turn))["result"]["stopReason"] == "end_turn"
        assert texts(peer, session)[-1] == text


@pytest.mark.smoke
async def test_a_cancel_ends_the_turn_as_cancelled_and_leaves_the_session_usable(connect: Host) -> None:
    """Nothing of the turn comes behind its answer."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "wait_for_cancel")
        await peer.update(session, "waiting")
        await peer.notify("session/cancel", sessionId=session)
        assert (await peer.answer_to(turn))["result"]["stopReason"] == "cancelled"
        assert (await peer.prompt(session, "again"))["result"]["stopReason"] == "end_turn"
        assert texts(peer, session) == ["waiting", "echo: again"]


async def test_a_cancel_ends_a_turn_that_waits_for_a_permission(connect: Host) -> None:
    """Also when the client never answers the question."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "perm")
        await peer.question("session/request_permission")
        await peer.notify("session/cancel", sessionId=session)
        assert (await peer.answer_to(turn))["result"]["stopReason"] == "cancelled"


async def test_the_clean_up_of_a_cancelled_turn_comes_before_its_answer(connect: Host) -> None:
    """A handler may still await and send."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "finally")
        await peer.update(session, "waiting")
        await peer.notify("session/cancel", sessionId=session)
        answer = await peer.answer_to(turn)
        assert answer["result"]["stopReason"] == "cancelled"
        assert texts(peer, session) == ["waiting", "cleaned up"]
        assert peer.log[-1] is answer


async def test_a_request_can_be_cancelled_by_its_id(connect: Host) -> None:
    """It is answered all the same."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "wait_for_cancel")
        await peer.update(session, "waiting")
        await peer.notify("$/cancel_request", requestId=turn)
        assert (await peer.answer_to(turn))["error"]["code"] == -32800


async def test_a_cancel_of_nothing_is_harmless(connect: Host) -> None:
    """Of an idle session, of an unknown one, of an unknown request."""
    async with connect() as peer:
        session = await peer.new_session()
        await peer.notify("session/cancel", sessionId=session)
        await peer.notify("session/cancel", sessionId="nobody")
        await peer.notify("$/cancel_request", requestId="nothing")
        assert (await peer.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"


async def test_a_second_prompt_on_a_busy_session_is_refused(connect: Host) -> None:
    """And the first goes on."""
    async with connect() as peer:
        session = await peer.new_session()
        turn = await peer.start_prompt(session, "wait_for_cancel")
        await peer.update(session, "waiting")
        refused = (await peer.prompt(session, "second"))["error"]
        assert refused["code"] == -32600
        assert refused["message"] == f"There is already an active prompt on session {session}"
        assert refused["data"] == {"sessionId": session}
        await peer.notify("session/cancel", sessionId=session)
        assert (await peer.answer_to(turn))["result"]["stopReason"] == "cancelled"


async def test_a_next_prompt_right_behind_an_answer_is_never_refused(connect: Host) -> None:
    """The turn is over when its answer leaves."""
    async with connect() as peer:
        session = await peer.new_session()
        for number in range(20):
            assert "result" in await peer.prompt(session, f"{number}")
        assert texts(peer, session) == [f"echo: {number}" for number in range(20)]


async def test_an_unknown_session_is_an_error_of_its_own(connect: Host) -> None:
    """Never a success."""
    async with connect() as peer:
        assert (await peer.prompt("nobody", "hello"))["error"]["code"] == -32002


@pytest.mark.parametrize("method", ["session/does_not_exist", "_extension", "session/load"])
async def test_a_method_that_is_not_served_is_not_found(connect: Host, method: str) -> None:
    """Also one of the protocol that the agent does not offer."""
    async with connect() as peer:
        assert (await peer.call(method, sessionId="s", cwd="/", mcpServers=[]))["error"]["code"] == -32601


async def test_an_unknown_notification_and_an_answer_nobody_waits_for_are_ignored(connect: Host) -> None:
    """The connection stays usable."""
    async with connect() as peer:
        await peer.notify("_unknown", some="thing")
        await peer.wire.send({"jsonrpc": "2.0", "id": 12345, "result": {}})
        assert await peer.new_session()


async def test_params_that_do_not_fit_name_their_place_and_not_their_value(connect: Host) -> None:
    """The value may be a secret."""
    async with connect() as peer:
        session = await peer.new_session()
        answer = await peer.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": 4711}])
        assert answer["error"]["code"] == -32602
        assert "4711" not in json.dumps(answer["error"])
        assert (await peer.call("session/new", mcpServers=[]))["error"]["code"] == -32602


async def test_an_object_that_is_no_request_is_answered(connect: Host) -> None:
    """And the connection stays usable."""
    async with connect() as peer:
        await peer.wire.send({"jsonrpc": "1.0", "id": 77, "method": "session/new", "params": {}})
        assert (await peer.answer_to(77))["error"]["code"] == -32600
        assert await peer.new_session()


async def test_a_failing_handler_is_an_internal_error_without_its_text(connect: Host) -> None:
    """The text stays on the agent's side; the session stays usable."""
    async with connect() as peer:
        session = await peer.new_session()
        answer = await peer.prompt(session, "fail")
        assert answer["error"]["code"] == -32603
        assert "never reaches" not in json.dumps(answer)
        assert "result" in await peer.prompt(session, "hello")


async def test_an_answer_has_the_id_of_its_request_in_its_own_type(connect: Host) -> None:
    """An integer is not its string."""
    async with connect() as peer:
        for identifier in (7000, "7000", "", "ä\u2028", 2**53, -1):
            await peer.start("_x", identifier)
            assert (await peer.answer_to(identifier))["id"] == identifier


async def test_any_text_travels_unchanged_both_ways(connect: Host) -> None:
    """Line separators, controls, everything beyond the first plane."""
    text = "ä\u2028\u2029\u0085\r\n\t\x00\x7f🙂 data: x\n\nid: 1\n"
    async with connect() as peer:
        session = await peer.new_session()
        await peer.prompt(session, f"echo {text}")
        assert texts(peer, session) == [f"echo: echo {text}"]


async def test_a_large_message_travels_both_ways(connect: Host) -> None:
    """A megabyte and more."""
    async with connect() as peer:
        session = await peer.new_session()
        await peer.prompt(session, "x" * 1_500_000)
        assert texts(peer, session) == ["echo: " + "x" * 1_500_000]
        await peer.prompt(session, "stream:3:1000000")
        assert [len(text) for text in texts(peer, session)[1:]] == [1_000_000] * 3


async def test_two_thousand_updates_arrive_in_order(connect: Host) -> None:
    """More than any queue on the way holds."""
    async with connect() as peer:
        session = await peer.new_session()
        answer = await peer.prompt(session, "stream:2000:100")
        assert len(peer.updates(session)) == 2000
        assert peer.log[-1] is answer


async def test_a_peer_that_leaves_in_the_middle_of_a_turn_harms_nobody(connect: Host) -> None:
    """The next connection is served as if nothing had been."""
    async with connect() as leaving:
        session = await leaving.new_session()
        await leaving.start_prompt(session, "wait_for_cancel")
        await leaving.update(session, "waiting")
    async with connect() as peer:
        with anyio.fail_after(20):
            assert "result" in await peer.prompt(await peer.new_session(), "hello")
