"""Bad input gets a clear error, loses nothing and ends nothing; no exception's text reaches the peer."""

import json
from typing import Any

import pytest
from rule_agents import UNSENDABLE

BAD_FRAMES = [
    (b"{bad", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 100_000, -32700),
    (b'{"a": NaN}', -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600),
    (b"42", -32600),
    (b'"text"', -32600),
    (b"null", -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"1.0","id":7,"method":"initialize"}', -32600),
    (b'{"id":7,"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":["a"]}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":null}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"initialize"}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":"x"}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt"}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":5}}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}', -32601),
    (b'{"jsonrpc":"2.0","id":7,"method":"_unknown"}', -32601),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/load","params":{}}', -32601),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/cancel","params":{"sessionId":"x"}}', -32601),
]
HARMLESS_FRAMES = [
    b"",
    b"   ",
    b'{"jsonrpc":"2.0","method":"$/unknown"}',
    b'{"jsonrpc":"2.0","method":"_unknown","params":[1]}',
    b'{"jsonrpc":"2.0","method":"session/cancel"}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}',
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{}}',
    b'{"jsonrpc":"2.0","id":999,"result":{}}',
    b'{"jsonrpc":"2.0","id":"x","error":"boom"}',
    b'{"jsonrpc":"2.0","id":null,"result":null}',
    b'{"jsonrpc":"2.0","id":[1],"result":null}',
]


@pytest.mark.parametrize(("frame", "code"), BAD_FRAMES)
async def test_a_bad_frame_is_answered_with_its_error(in_memory: Any, frame: bytes, code: int) -> None:
    async with in_memory() as peer:
        await peer.write(frame)
        answer = await peer.seen(lambda answer: "error" in answer)
        assert answer["error"]["code"] == code
        assert answer["id"] in (None, 7)
        assert await peer.initialize()


async def test_every_bad_frame_in_one_connection_ends_nothing(connect: Any) -> None:
    async with connect() as peer:
        await peer.write(*(frame for frame, _ in BAD_FRAMES), *HARMLESS_FRAMES)
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "echo:alive")
        await peer.write(prompt)
        await peer.says("alive")
        errors = [frame["error"]["code"] for frame in peer.log if "error" in frame]
        assert sorted(errors[: len(BAD_FRAMES)]) == sorted(code for _, code in BAD_FRAMES)


@pytest.mark.parametrize("frame", HARMLESS_FRAMES)
async def test_what_needs_no_answer_gets_none(in_memory: Any, frame: bytes) -> None:
    async with in_memory() as peer:
        await peer.write(frame)
        await peer.initialize()
        answers = [answer for answer in peer.log if answer.get("id") is not None]
        assert len(answers) == 1


async def test_the_text_of_an_exception_stays_here(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "fail")
        await peer.write(prompt)
        error = (await peer.answer(prompt))["error"]
        assert (error["code"], error["message"]) == (-32603, "Internal error")
        assert set(error["data"]) == {"correlationId"}
        assert "secret" not in json.dumps(peer.log)


@pytest.mark.parametrize("what", sorted(UNSENDABLE))
async def test_an_error_that_is_no_json_is_an_internal_error_and_ends_nothing(connect: Any, what: str) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, f"unsendable:{what}")
        await peer.write(prompt)
        error = (await peer.answer(prompt))["error"]
        assert (error["code"], error["message"]) == (-32603, "Internal error")
        following = peer.prompt(session, "echo:still here")
        await peer.write(following)
        assert "result" in await peer.answer(following)


async def test_a_handler_that_wants_to_end_the_process_ends_its_turn_only(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "exit")
        await peer.write(prompt)
        assert (await peer.answer(prompt))["error"]["code"] == -32603
        following = peer.prompt(session, "echo:still here")
        await peer.write(following)
        assert "result" in await peer.answer(following)


async def test_meta_reaches_no_argument(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        victim, session = await peer.new_session(), await peer.new_session()
        prompt = peer.prompt(session, "echo:mine")
        prompt["params"]["_meta"] = {"session_id": victim, "sessionId": victim, "prompt": "x", "self": 1, "cwd": "/etc"}
        await peer.write(prompt)
        await peer.answer(prompt)
        assert (peer.texts(victim), peer.texts(session)) == ([], ["mine"])


async def test_a_bad_value_is_named_by_its_path_and_never_shown(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        secret = {"sessionId": "s", "prompt": [{"type": "text", "text": {"password": "hunter2"}}]}
        error = (await peer.call("session/prompt", secret))["error"]
        assert error["code"] == -32602
        assert "prompt[0].text" in error["message"]
        assert "hunter2" not in json.dumps(error)


async def test_a_lone_surrogate_becomes_a_replacement_character(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "echo:half \ud800 a character")
        await peer.write(prompt)
        await peer.says("half \ufffd a character")


async def test_a_message_over_the_limit_is_answered_and_skipped(connect: Any) -> None:
    async with connect("RuleAgent", {"max-message-size": "100KB"}) as peer:
        await peer.initialize()
        session = await peer.new_session()
        if not hasattr(peer.runtime, "pid"):
            return
        await peer.write(b"x" * 300_000)
        answer = await peer.seen(lambda frame: "error" in frame)
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "max-message-size" in answer["error"]["message"]
        prompt = peer.prompt(session, "echo:next")
        await peer.write(prompt)
        assert "result" in await peer.answer(prompt)
