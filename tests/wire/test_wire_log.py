"""The judge of whole connections finds what is wrong with one."""

import pytest

from tests.schema import validate_frame, validate_log

INITIALIZE = ("client", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}')
ANSWER = ("agent", b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}')

BAD_LOGS = [
    ([("agent", b"[]")], "no JSON object"),
    ([("agent", b'{"id":1,"result":{}}')], "jsonrpc"),
    ([ANSWER], "no open request has the id 1"),
    ([INITIALIZE, ANSWER, ANSWER], "no open request has the id 1"),
    ([INITIALIZE, INITIALIZE], "the id 1 is in use"),
    ([INITIALIZE, ("client", ANSWER[1])], "no open request"),
    ([INITIALIZE, ("agent", b'{"jsonrpc":"2.0","id":1,"result":{}}')], "protocolVersion"),
    ([INITIALIZE, ("agent", b'{"jsonrpc":"2.0","id":1}')], "neither or both"),
    ([INITIALIZE, ("agent", b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}')], "code"),
    ([("agent", INITIALIZE[1])], "the client has no method initialize"),
    ([("client", b'{"jsonrpc":"2.0","method":"session/cancel","params":{}}')], "sessionId"),
    ([("client", b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"},"extra":1}')], "extra"),
]


def test_a_good_log_passes_and_tells_what_is_open():
    prompt = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    log = validate_log(
        [
            INITIALIZE,
            ANSWER,
            ("client", prompt),
            ("agent", {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
            ("agent", {"jsonrpc": "2.0", "id": 1, "method": "_ask", "params": [1]}),
            ("client", {"jsonrpc": "2.0", "id": 1, "result": 5}),
            ("agent", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}),
        ]
    )
    assert log.unanswered() == ["session/prompt"]


@pytest.mark.parametrize(("frames", "problem"), BAD_LOGS)
def test_a_bad_log_is_refused(frames, problem):
    with pytest.raises(AssertionError, match=problem):
        validate_log(frames)


def test_a_single_answer_is_judged_by_the_method_it_answers():
    validate_frame(ANSWER[1], "agent", answers="initialize")
    with pytest.raises(AssertionError, match="stopReason"):
        validate_frame(ANSWER[1], "agent", answers="session/prompt")
