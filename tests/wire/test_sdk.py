"""The door to the official SDK's models works alike on every supported version of it."""

import importlib

import pytest
from pydantic import BaseModel

from acp_integration import sdk
from acp_integration.wire.agent import NewSessionRequest, PromptRequest
from acp_integration.wire.content import TextContent
from acp_integration.wire.decoding import PARAMS, RESULTS, InvalidParams

pytestmark = pytest.mark.sdk


class Question(BaseModel):
    text: str | None = None


@pytest.mark.parametrize("method", PARAMS)
def test_every_method_has_a_model_of_its_params(method):
    assert sdk.model_for(method) is not None


@pytest.mark.parametrize("method", sorted(RESULTS.keys() - {"mcp/message"}))
def test_every_method_has_a_model_of_its_result(method):
    assert sdk.result_for(method) is not None


def test_any_json_value_has_no_model():
    with pytest.raises(LookupError):
        sdk.result_for("mcp/message")


def test_a_struct_and_its_json_become_the_same_model():
    struct = PromptRequest(session_id="s", prompt=[TextContent(text="hi", meta={"k": 1})], meta={"session_id": "x"})
    raw = b'{"sessionId":"s","prompt":[{"type":"text","text":"hi","_meta":{"k":1}}],"_meta":{"session_id":"x"}}'
    model = sdk.request_model("session/prompt", struct)
    assert model == sdk.request_model("session/prompt", raw)
    assert isinstance(model, sdk.load().PromptRequest)
    assert (model.session_id, model.field_meta, model.prompt[0].text) == ("s", {"session_id": "x"}, "hi")


def test_what_we_forgive_reaches_the_model_forgiven():
    model = sdk.request_model("session/new", b'{"cwd":"/tmp","mcpServers":null,"_meta":5}')
    assert (model.cwd, model.mcp_servers, model.field_meta) == ("/tmp", [], None)
    assert sdk.request_model("session/new", NewSessionRequest(cwd="/tmp")) == model


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "SetSessionConfigOptionBooleanRequest"), ("on", "SetSessionConfigOptionSelectRequest")],
)
def test_a_config_value_chooses_its_model(value, name):
    kind = b',"type":"boolean"' if value is True else b""
    literal = b"true" if value is True else b'"on"'
    raw = b'{"sessionId":"s","configId":"c","value":%b%b}' % (literal, kind)
    model = sdk.request_model("session/set_config_option", raw)
    assert (type(model).__name__, model.value) == (name, value)


def test_params_that_are_refused_name_their_place():
    with pytest.raises(InvalidParams, match=r"^params\.cwd must be a string$"):
        sdk.request_model("session/new", b'{"cwd":5}')


def test_a_refusal_of_the_sdk_holds_no_value():
    with pytest.raises(InvalidParams, match=r"^params\.cwd is not what the installed SDK takes$") as caught:
        sdk._validate(sdk.load().NewSessionRequest, b'{"cwd":["hunter2"],"mcpServers":[]}')
    assert "hunter2" not in repr(caught.value)


def test_models_are_told_from_other_values():
    schema = sdk.load()
    assert sdk.is_model(schema.TextContentBlock(type="text", text="x"))
    assert sdk.is_model(Question())
    assert not sdk.is_model({"type": "text"})
    assert not sdk.is_model(TextContent(text="x"))


def test_the_request_error_of_the_sdk_is_told_from_other_errors():
    official = importlib.import_module("acp").RequestError
    derived = type("Derived", (official,), {})
    assert sdk.is_request_error(official(-32000, "no"))
    assert sdk.is_request_error(derived(-32000, "no"))
    assert not sdk.is_request_error(ValueError("no"))


def test_telling_a_model_imports_no_sdk(run_python):
    told = (
        "import sys; from acp_integration import sdk;"
        "print(sdk.is_model(1), sdk.is_request_error(ValueError()), sdk.is_model_name('schema.PromptRequest'),"
        " sdk.is_model_name('Any'), sdk.is_model_name('BaseModel'), 'acp' in sys.modules)"
    )
    done = run_python("-c", told)
    assert done.stdout.split() == ["False", "False", "True", "False", "False", "False"], done.stderr


@pytest.mark.parametrize("name", ["PromptRequest", "schema.PromptRequest", "acp.schema.PromptRequest"])
def test_a_bare_or_dotted_name_resolves(name):
    assert sdk.resolve(name) is sdk.load().PromptRequest


@pytest.mark.parametrize("name", ["Any", "Prompt", "acp.schema.Union", "BaseModel"])
def test_what_is_no_model_does_not_resolve(name):
    with pytest.raises(LookupError, match=name):
        sdk.resolve(name)


def test_nulls_are_dropped_except_inside_free_values():
    call = sdk.load().ToolCallStart(session_update="tool_call", tool_call_id="t", title="T", raw_input={"a": None})
    plain = sdk.to_builtins(call)
    assert plain == {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "rawInput": {"a": None}}


def test_a_null_that_clears_a_title_is_kept():
    schema = sdk.load()
    update = schema.SessionInfoUpdate(session_update="session_info_update", title=None)
    notification = schema.SessionNotification(session_id="s", update=update)
    cleared = b'"title":null'
    assert cleared in sdk.to_json(update)
    assert cleared in sdk.to_json(notification)
    unchanged = schema.SessionInfoUpdate(session_update="session_info_update", updated_at="2026-11-30T00:00:00Z")
    assert cleared not in sdk.to_json(unchanged)


def test_a_model_of_the_application_keeps_its_nulls():
    assert sdk.to_json(Question()) == b'{"text":null}'


def test_an_update_becomes_its_model():
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
    model = sdk.update_model(chunk)
    assert isinstance(model, sdk.load().AgentMessageChunk)
    assert sdk.to_builtins(model) == chunk


def test_an_update_the_sdk_does_not_know_has_no_model():
    with pytest.raises(ValueError, match="no model for this update"):
        sdk.update_model({"sessionUpdate": "dance"})


def test_it_loads_once_in_many_threads(run_python):
    loaded = """
import threading
from acp_integration import sdk
found, start = [], threading.Barrier(8)
def load():
    start.wait()
    found.append(sdk.load())
threads = [threading.Thread(target=load) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), len({id(module) for module in found}), found[0].PromptRequest.__name__)
"""
    done = run_python("-c", loaded)
    assert done.stdout.split() == ["8", "1", "PromptRequest"], done.stderr
