"""An agent killed at a random point of a turn: what its client had seen comes back, once and in order."""

import json
import random
import signal
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.runtime.raw_peer import RawPeer

Texts = list[tuple[str, str]]


def flat(updates: list[dict[str, Any]]) -> Texts:
    """What updates say, the texts of one message joined however they were divided."""
    found: Texts = []
    for update in updates:
        content = update.get("content")
        if not isinstance(content, dict):
            found.append((update["sessionUpdate"], json.dumps({**update, "_meta": None}, sort_keys=True)))
            continue
        speaker = f"{update['sessionUpdate']} {update.get('messageId')}"
        if found and found[-1][0] == speaker and update["sessionUpdate"] != "user_message_chunk":
            found[-1] = (speaker, found[-1][1] + content["text"])
        else:
            found.append((speaker, content["text"]))
    return found


def updates_of(peer: RawPeer) -> list[dict[str, Any]]:
    return [frame["params"]["update"] for frame in peer.log if frame.get("method") == "session/update"]


def begins(whole: Texts, start: Texts) -> bool:
    """Whether a conversation begins with another one, whose last message may be half."""
    if not start:
        return True
    *complete, (speaker, text) = start
    position = len(complete)
    same = whole[:position] == complete and len(whole) > position
    return same and whole[position][0] == speaker and whole[position][1].startswith(text)


async def load(peer: RawPeer, session: str, method: str = "load") -> None:
    params = {"sessionId": session, "cwd": "/somewhere", "mcpServers": []}
    assert "result" in await peer.call(f"session/{method}", params)


async def killed_turn(peer: RawPeer, session: str, text: str, frames: int) -> Texts:
    """What the client saw of a turn that ended with its process, killed after so many frames."""
    before, count = len(updates_of(peer)), 0

    def enough(frame: Any) -> bool:
        nonlocal count
        count += frame.get("method") == "session/update"
        return count >= before + frames

    await peer.write(peer.prompt(session, text))
    with anyio.fail_after(20):
        await peer.seen(enough)
        peer.runtime.send_signal(signal.SIGKILL)
        await peer.ended.wait()
    return flat(updates_of(peer)[before:])


async def check_kills(process: Callable[..., Any], times: int, chance: random.Random) -> None:
    session, conversation = None, Texts()
    for number in range(times):
        async with process() as peer:
            await peer.initialize()
            if session is None:
                session = await peer.new_session()
            else:
                await load(peer, session)
                replayed = flat(updates_of(peer))
                assert begins(replayed, conversation), (number, conversation[-2:], replayed[-5:])
                assert "_meta" in updates_of(peer)[-1]
                conversation = replayed
            prompt = f"talk:{700 + number}"
            conversation.append(("user_message_chunk None", prompt))
            conversation += await killed_turn(peer, session, prompt, chance.randrange(1, 500))
    async with process() as peer:
        await peer.initialize()
        await load(peer, session or "")
        assert begins(flat(updates_of(peer)), conversation)
        prompts = [text for speaker, text in flat(updates_of(peer)) if speaker.startswith("user")]
        assert prompts == [f"talk:{700 + number}" for number in range(times)]


async def test_ten_killed_turns_come_back(process: Callable[..., Any]):
    await check_kills(process, 10, random.Random(1))


@pytest.mark.full
async def test_a_hundred_killed_turns_come_back(process: Callable[..., Any]):
    await check_kills(process, 100, random.Random())


@pytest.mark.parametrize("method", ["load", "resume"])
async def test_an_agent_that_was_killed_remembers_what_was_said_and_counts_on(process: Callable[..., Any], method: str):
    async with process() as peer:
        await peer.initialize()
        session = await peer.new_session()
        for text in ("hello", "second"):
            request = peer.prompt(session, text)
            await peer.write(request)
            await peer.answer(request)
        peer.runtime.send_signal(signal.SIGKILL)
        await peer.ended.wait()
    async with process() as peer:
        await peer.initialize()
        await load(peer, session, method)
        assert bool(updates_of(peer)) == (method == "load")
        await peer.write(peer.prompt(session, "first"))
        await peer.says("You first said: hello")
        await peer.write(request := peer.prompt(session, "count"))
        await peer.answer(request)
        assert peer.texts()[-1] == "This is turn 4"


async def test_two_processes_share_a_file_and_the_latest_load_holds_the_session(process: Callable[..., Any]):
    async with process() as one, process() as two:
        await one.initialize()
        await two.initialize()
        session = await one.new_session()
        await one.write(request := one.prompt(session, "talk:100"))
        await two.new_session()
        await one.answer(request)
        await load(two, session)
        assert flat(updates_of(two))[1:] == flat(updates_of(one))
        refused = await one.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
        assert refused["error"]["code"] == -32600
        listed = (await one.call("session/list"))["result"]["sessions"]
        assert len(listed) == 2
