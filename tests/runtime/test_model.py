"""Random interleavings of everything a client can do; the rules hold in each, and named breakages are each caught."""

import asyncio
import os
import warnings
from collections import Counter
from typing import Any

import pytest
from breakages import BREAKAGES
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from model_world import Action, Client, live

EXAMPLES = int(os.environ.get("ACP_SOAK_EXAMPLES", "250"))
BREAKAGE_EXAMPLES = 400
SESSIONS = st.integers(0, 2)
KINDS = ["quick", "stream", "wait", "ask", "fail", "clean", "stubborn"]
ACTIONS = st.one_of(
    st.tuples(st.just("prompt"), SESSIONS, st.sampled_from(KINDS)),
    st.tuples(st.just("prompt"), SESSIONS, st.sampled_from(["wait", "ask", "clean", "stubborn"])),
    st.tuples(st.just("follow"), SESSIONS),
    st.tuples(st.just("mode"), SESSIONS, st.sampled_from(["slow", "fast"])),
    st.tuples(st.just("cancel"), SESSIONS),
    st.tuples(st.just("stop")),
    st.tuples(st.just("pause")),
    st.tuples(st.just("close"), SESSIONS),
    st.tuples(st.just("withdraw"), st.integers(0, 3)),
    st.tuples(st.just("answer"), st.sampled_from(["yes", "cancelled", "never"])),
    st.tuples(st.just("release")),
    st.tuples(st.just("step"), st.integers(4, 16)),
    st.tuples(st.just("step"), st.integers(1, 4)),
)
LIVES = st.lists(ACTIONS, min_size=8, max_size=28)
ENDINGS = st.sampled_from(["half-close", "half-close", "stop", "drop"])


def run(actions: list[Action], ending: str) -> Client:
    with asyncio.Runner(debug=True) as runner:
        runner.get_loop().slow_callback_duration = 5
        client = runner.run(live(actions, ending))
        left = asyncio.all_tasks(runner.get_loop())
    assert not left, f"tasks left running: {left}"
    return client


def check(client: Client) -> None:
    """Every rule, on the log of one life."""
    world = client.world
    assert not world.faults, world.faults
    assert client.runtime.active_turns == 0, "a turn is left reserved"
    assert not any(world.running.values()), "a handler is left running"
    for sent in client.sent.values():
        check_answer(client, sent)
    check_controls(client)
    check_updates(client)


def check_answer(client: Client, sent: Any) -> None:
    answers = client.answers(sent.id)
    assert len(answers) <= 1, "a request was answered twice"
    assert answers or client.dropped, f"no answer to {sent}"
    if not answers or sent.method != "session/prompt":
        return
    answer = answers[0]
    ran = sent.name in client.world.ran
    cancelled = answer.get("result", {}).get("stopReason") == "cancelled"
    withdrawn = answer.get("error", {}).get("code") == -32800
    if cancelled and not answered_at_the_end(client, answer):
        assert any(place >= sent.place for place in client.cancels[sent.session]), "a cancel reached a later turn"
    if withdrawn:
        assert client.cancels[f"#{sent.id}"], "withdrawn by nobody"
    if not ran and not (cancelled or withdrawn):
        assert answer["error"]["code"] in (-32600, -32002), "answered without having run"
    if ran and "error" in answer:
        assert answer["error"]["code"] in (-32603, -32800), "refused, and run all the same"
    if ran and cancelled and sent.kind == "ask" and not answered_at_the_end(client, answer):
        assert f"{sent.name} ends" in client.texts, "a question outlived the cancel of its turn"
    told = any(place >= sent.place for place in client.cancels[sent.session])
    assert not (surely_told(client, sent) and sent.id in client.unanswered_at_end), (
        "a cancel ended nothing within the grace period"
    )
    if cancelled and not told and client.ending == "half-close" and sent.kind != "ask":
        raise AssertionError("the end of input lost an answer")
    check_refusal(client, sent, answer)
    check_told(client, sent, answer)


def surely_told(client: Client, sent: Any) -> bool:
    """Whether a prompt was cancelled by what was not taken back itself: a close that is withdrawn may do nothing."""
    taken_back = {
        other.place
        for other in client.sent.values()
        if other.method == "session/close"
        for answer in client.answers(other.id)
        if answer.get("error", {}).get("code") == -32800
    }
    return any(place >= sent.place and place not in taken_back for place in client.cancels[sent.session])


def answered_at_the_end(client: Client, answer: Any) -> bool:
    return client.logged_at_end is not None and client.log.index(answer) >= client.logged_at_end


def check_refusal(client: Client, sent: Any, answer: Any) -> None:
    refused = answer.get("error", {}).get("message", "").startswith("There is already an active prompt")
    earlier = [
        other
        for other in client.sent.values()
        if other.session == sent.session and other.method == "session/prompt" and other.id < sent.id
    ]
    position = client.log.index(answer)
    if refused:
        assert any(not_yet_answered(client, other, position) for other in earlier), "refused on an idle session"
    elif sent.name in client.world.ran and earlier:
        previous = earlier[-1]
        if previous.name in client.world.ran:
            assert client.world.ran.index(previous.name) < client.world.ran.index(sent.name), "turns out of order"


def not_yet_answered(client: Client, other: Any, position: int) -> bool:
    answers = client.answers(other.id)
    return not answers or client.log.index(answers[0]) > position


def check_told(client: Client, sent: Any, answer: Any) -> None:
    """A cancel sent behind a prompt, and read before its answer, decides that answer."""
    waited = f"{sent.name} begins" in client.texts and f"{sent.name} ends" not in client.texts
    if surely_told(client, sent) and waited and "result" in answer:
        assert answer["result"]["stopReason"] == "cancelled", "a cancelled turn ended as if it was not"


def check_controls(client: Client) -> None:
    for session in client.sessions:
        received = [
            sent.name
            for sent in client.sent.values()
            if sent.session == session and sent.method in ("session/set_mode", "session/close")
        ]
        ran = client.world.controls[session]
        positions = iter(received)
        assert all(name in positions for name in ran), f"{ran} ran in another order than {received}"


def check_updates(client: Client) -> None:
    ended: set[str] = set()
    names = {sent.id: sent.name for sent in client.sent.values() if sent.method == "session/prompt"}
    for message in client.log:
        if message.get("method") == "session/update":
            text = message["params"]["update"].get("content", {})
            name = text.get("text", "").split(" ")[0] if isinstance(text, dict) else ""
            assert name not in ended, f"an update of {name} is behind its answer"
        elif message.get("id") in names and "method" not in message:
            ended.add(names[message["id"]])


seen: Counter[str] = Counter()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(LIVES, ENDINGS)
def drive(actions: list[Action], ending: str) -> None:
    client = run(actions, ending)
    client.texts = texts_of(client)
    seen["examples"] += 1
    seen["two or more overlapping turns"] += client.world.overlaps > 0
    for phase in client.phases:
        seen[f"a cancel {phase}"] += 1
    check(client)


def texts_of(client: Client) -> set[str]:
    updates = (message["params"]["update"] for message in client.log if message.get("method") == "session/update")
    contents = (update.get("content") for update in updates)
    return {content["text"] for content in contents if isinstance(content, dict) and "text" in content}


def test_a_close_that_is_withdrawn_before_it_ran_did_nothing() -> None:
    client = run([("prompt", 0, "wait"), ("step", 8), ("close", 0), ("withdraw", 0)], "half-close")
    check(client)
    *_, turn, close = client.sent.values()
    assert client.answers(close.id)[0]["error"]["code"] == -32800
    assert client.answers(turn.id)[0]["result"]["stopReason"] == "end_turn"


def test_the_rules_hold_in_every_interleaving(capsys: pytest.CaptureFixture[str]) -> None:
    seen.clear()
    drive()
    with capsys.disabled():
        print("\n" + ", ".join(f"{name}: {count}" for name, count in sorted(seen.items())))
    assert seen["two or more overlapping turns"] > 0
    for phase in ("before any turn", "waiting", "running", "idle"):
        assert seen[f"a cancel {phase}"] > 0, f"no cancel {phase} in the whole run"


@pytest.mark.parametrize("name", sorted(BREAKAGES))
def test_a_breakage_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[name](monkeypatch)
    search = settings(
        max_examples=BREAKAGE_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(LIVES, ENDINGS)(judged))
    with warnings.catch_warnings(), pytest.raises(BaseException) as caught:  # noqa: PT011, PT012  # any fault counts
        warnings.simplefilter("ignore")
        search()
    assert not isinstance(caught.value, KeyboardInterrupt)


def judged(actions: list[Action], ending: str) -> None:
    client = run(actions, ending)
    client.texts = texts_of(client)
    check(client)
