"""A request to the client ends with its turn, also when the client answers nothing and ignores its withdrawal."""

import time
from typing import Any

import pytest

CAPABILITIES = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
}
METHODS = {
    "permission": "session/request_permission",
    "choice": "session/request_permission",
    "form": "elicitation/create",
    "url": "elicitation/create",
    "read": "fs/read_text_file",
    "write": "fs/write_text_file",
    "terminal": "terminal/wait_for_exit",
    "extension": "_ask",
}
AS_IF_SAID = {"permission": "got cancelled", "choice": "got None", "form": "got cancel", "url": "got cancel"}


async def asked(peer: Any, kind: str) -> tuple[str, Any, Any]:
    """A turn that waits for its client."""
    await peer.initialize(**CAPABILITIES)
    session = await peer.new_session()
    prompt = peer.prompt(session, kind)
    await peer.write(prompt)
    if kind == "terminal":
        create = await peer.seen(lambda frame: frame.get("method") == "terminal/create")
        await peer.write({"jsonrpc": "2.0", "id": create["id"], "result": {"terminalId": "t"}})
    request = await peer.seen(lambda frame: frame.get("method") == METHODS[kind])
    return session, prompt, request


@pytest.mark.parametrize("kind", sorted(METHODS))
async def test_a_client_that_never_answers_holds_nothing_open(connect: Any, kind: str) -> None:
    async with connect("AskingAgent") as peer:
        session, prompt, request = await asked(peer, kind)
        cancelled_at = time.monotonic()
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert time.monotonic() - cancelled_at < 4, "the grace period is 5 s: the race ended it, not the force"
        withdrawals = [frame for frame in peer.log if frame.get("method") == "$/cancel_request"]
        assert [frame["params"] for frame in withdrawals] == [{"requestId": request["id"]}]
        assert AS_IF_SAID.get(kind, "raised TurnCancelled") in peer.texts(session)
        following = peer.prompt(session, "open")
        await peer.write(following)
        await peer.says("open: 0" if kind != "terminal" else "open: 1")


async def test_a_terminal_of_a_cancelled_turn_is_released_once(connect: Any) -> None:
    async with connect("AskingAgent") as peer:
        session, prompt, _ = await asked(peer, "terminal")
        await peer.write(peer.cancel(session))
        await peer.answer(prompt)
        following = peer.prompt(session, "open")
        await peer.write(following)
        await peer.answer(following)
        releases = [frame for frame in peer.log if frame.get("method") == "terminal/release"]
        assert [frame["params"]["terminalId"] for frame in releases] == ["t"]


@pytest.mark.parametrize("kind", ["permission", "extension"])
async def test_a_blocked_sync_handler_is_woken(connect: Any, kind: str) -> None:
    async with connect("SyncAskingAgent") as peer:
        session, prompt, _ = await asked(peer, kind)
        cancelled_at = time.monotonic()
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert time.monotonic() - cancelled_at < 4


async def test_a_late_answer_is_dropped(connect: Any) -> None:
    async with connect("AskingAgent") as peer:
        session, prompt, request = await asked(peer, "read")
        await peer.write(peer.cancel(session))
        await peer.answer(prompt)
        await peer.write({"jsonrpc": "2.0", "id": request["id"], "result": {"content": "too late"}})
        following = peer.prompt(session, "open")
        await peer.write(following)
        await peer.says("open: 0")


async def test_asked_when_cancelled_already_it_is_not_sent(connect: Any) -> None:
    async with connect("AskingAgent") as peer:
        await peer.initialize(**CAPABILITIES)
        session = await peer.new_session()
        prompt = peer.prompt(session, "read")
        await peer.write(prompt, peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert not [frame for frame in peer.log if frame.get("method") == "fs/read_text_file"]


async def test_a_machine_that_does_not_answer_in_time_fails_the_request(connect: Any) -> None:
    async with connect("AskingAgent", {"request-timeout": "200ms"}) as peer:
        session, prompt, request = await asked(peer, "read")
        assert (await peer.answer(prompt))["error"]["code"] == -32603
        assert "raised TurnError" in peer.texts(session)
        await peer.seen(lambda frame: frame.get("params") == {"requestId": request["id"]})


async def test_an_answer_reaches_the_handler_with_the_text_of_its_id(connect: Any) -> None:
    async with connect("AskingAgent") as peer:
        session, prompt, request = await asked(peer, "read")
        await peer.write({"jsonrpc": "2.0", "id": str(request["id"]), "result": {"content": "the text"}})
        await peer.answer(prompt)
        assert "got the text" in peer.texts(session)


@pytest.mark.parametrize("error", ["boom", {"code": "x"}, {"code": -32001, "message": "no"}, [1]])
async def test_an_error_of_any_form_ends_the_request(connect: Any, error: Any) -> None:
    async with connect("AskingAgent") as peer:
        session, prompt, request = await asked(peer, "read")
        await peer.write({"jsonrpc": "2.0", "id": request["id"], "error": error})
        await peer.answer(prompt)
        assert "raised PeerError" in peer.texts(session)
