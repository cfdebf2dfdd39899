"""What is refused names its place and never its value; what may be forgiven is forgiven; nothing else is changed."""

from random import Random
from typing import Any

import msgspec
import pytest

from acp_integration.jsonrpc import encode
from acp_integration.wire import agent, client, content, mcp, session, updates
from acp_integration.wire.capabilities import AuthMethodAgent, AuthMethodTerminal, ClientCapabilities
from acp_integration.wire.decoding import PARAMS, InvalidParams, InvalidResult, decode_params, decode_result
from tests.schema import definition_names, definitions
from tests.wire.generator import Generator

SECRET = "hunter2"
CALL = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"}
PARAMS_KEYS = sorted(key for key in definition_names() if key[1] == "params" and key[2] in PARAMS)

REFUSED = [
    ("session/prompt", "{}", "params.sessionId is missing"),
    ("session/prompt", "null", "params.sessionId is missing"),
    ("session/prompt", "[]", "params must be an object"),
    ("session/prompt", '{"sessionId":"s"}', "params.prompt is missing"),
    ("session/prompt", '{"sessionId":7,"prompt":[]}', "params.sessionId must be a string"),
    ("session/prompt", '{"sessionId":"s","prompt":{}}', "params.prompt must be a list"),
    ("session/prompt", '{"sessionId":"s","prompt":["x"]}', "params.prompt[0] must be an object"),
    ("session/prompt", '{"sessionId":"s","prompt":[{}]}', "params.prompt[0].type is missing"),
    (
        "session/prompt",
        '{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"text","text":5}]}',
        "params.prompt[1].text must be a string",
    ),
    (
        "session/prompt",
        '{"sessionId":"s","prompt":[{"type":"hologram"}]}',
        "params.prompt[0].type must be one of text, image, audio, resource_link, resource",
    ),
    (
        "session/prompt",
        '{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u"}}]}',
        "params.prompt[0].resource.text is missing",
    ),
    ("initialize", '{"protocolVersion":"1"}', "params.protocolVersion must be an integer"),
    ("initialize", '{"protocolVersion":true}', "params.protocolVersion must be an integer"),
    ("initialize", '{"protocolVersion":1.0}', "params.protocolVersion must be an integer"),
    ("initialize", '{"protocolVersion":65536}', "params.protocolVersion must be at most 65535"),
    ("initialize", '{"protocolVersion":-1}', "params.protocolVersion must be at least 0"),
    ("session/new", '{"cwd":null}', "params.cwd must be a string"),
    (
        "session/new",
        '{"cwd":"/","mcpServers":[{"name":"n","command":"c","env":[{"name":"k","value":1}]}]}',
        "params.mcpServers[0].env[0].value must be a string",
    ),
    ("session/new", '{"cwd":"/","mcpServers":[{"type":"ftp"}]}', "params.mcpServers[0].type names nothing known here"),
    ("session/list", '{"cursor":5}', "params.cursor must be a string or null"),
    (
        "session/set_config_option",
        '{"sessionId":"s","configId":"c","value":true}',
        'params.value must be a string unless "type" is "boolean"',
    ),
    (
        "session/set_config_option",
        '{"sessionId":"s","configId":"c","type":"boolean","value":1}',
        "params.value must be a string or true or false",
    ),
    ("mcp/message", '{"method":"m"}', "params.serverId is missing"),
    ("mcp/message", '{"method":"m","serverId":"s"}', "params.requestId is missing"),
    ("providers/set", '{"providerId":"p","apiType":"a","baseUrl":"u","headers":{"X-Key":5}}', "params.headers.X-Key "),
    ("$/cancel_request", '{"requestId":1.5}', "params.requestId must be an integer or a string or null"),
    ("elicitation/create", '{"mode":"url","message":"m","elicitationId":"e","url":"u"}', "params.sessionId is missing"),
    ("session/update", '{"sessionId":"s","update":{"sessionUpdate":"notice","title":"","severity":"x"}}', "title must"),
]


@pytest.mark.parametrize(("method", "raw", "text"), REFUSED)
def test_a_refusal_names_the_place_and_the_problem(method, raw, text):
    with pytest.raises(InvalidParams) as caught:
        decode_params(method, raw.encode())
    assert text in str(caught.value)
    assert str(caught.value) == f"{caught.value.path} {caught.value.problem}"


def test_a_refused_result_names_its_place():
    with pytest.raises(InvalidResult, match=r"^result\.outcome\.optionId is missing$"):
        decode_result("session/request_permission", b'{"outcome":{"outcome":"selected"}}')


def decoded_update(update: dict[str, Any]) -> Any:
    return decode_params("session/update", encode({"sessionId": "s", "update": update})).update


def with_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return SECRET
    if isinstance(value, list):
        return [with_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: with_secrets(item) for key, item in value.items()}
    return value


def refusal_of(method: str, value: Any) -> InvalidParams | None:
    try:
        decode_params(method, encode(value))
    except InvalidParams as error:
        return error
    return None


@pytest.mark.parametrize("key", PARAMS_KEYS, ids="-".join)
def test_a_refusal_never_holds_a_value(key):
    generators = [Generator(definitions(), Random(seed)) for seed in range(60)]
    name = definition_names()[key]
    values = [with_secrets(generator.broken(generator.instance(name))) for generator in generators]
    refusals = [error for value in values if (error := refusal_of(key[2], value))]
    assert refusals
    assert not [error for error in refusals if SECRET in str(error)]


def test_a_key_that_is_no_name_is_left_out_of_the_path():
    raw = encode({"providerId": "p", "apiType": "a", "baseUrl": "u", "headers": {"k" * 65: 1}})
    with pytest.raises(InvalidParams, match=r"^params\.headers\[\.\.\.\] must be a string$"):
        decode_params("providers/set", raw)


def test_raw_params_decode_as_bytes_do():
    raw = msgspec.Raw(b'{"sessionId":"s"}')
    assert decode_params("session/cancel", raw) == agent.CancelNotification(session_id="s")


def test_an_unknown_method_is_a_key_error():
    with pytest.raises(KeyError):
        decode_params("session/dance", b"{}")
    with pytest.raises(KeyError):
        decode_result("session/cancel", b"{}")


def test_unknown_fields_are_ignored():
    assert decode_params("logout", b'{"unheardOf":[1]}') == agent.LogoutRequest()


def test_null_stands_for_an_empty_object():
    assert decode_params("logout", b"null") == agent.LogoutRequest()
    assert decode_result("fs/write_text_file", b"null") == client.WriteTextFileResponse()
    assert decode_result("session/load", b"null") == agent.LoadSessionResponse()


def test_meta_is_kept_on_every_level_and_a_malformed_one_is_dropped():
    raw = b'{"sessionId":"s","_meta":{"session_id":"x"},"prompt":[{"type":"text","text":"a","_meta":7}]}'
    prompt = decode_params("session/prompt", raw)
    assert (prompt.session_id, prompt.meta) == ("s", {"session_id": "x"})
    assert prompt.prompt == [content.TextContent(text="a")]


def test_missing_and_null_lists_are_empty():
    assert decode_params("session/new", b'{"cwd":"/"}') == agent.NewSessionRequest(cwd="/")
    assert decode_params("session/new", b'{"cwd":"/","mcpServers":null}').mcp_servers == []


def test_malformed_optional_fields_count_as_missing_each_by_itself():
    files = {"readTextFile": "y", "writeTextFile": True}
    params = {"protocolVersion": 1, "clientInfo": {"name": "n"}, "clientCapabilities": {"fs": files}}
    request = decode_params("initialize", encode(params))
    assert request.client_info is None
    assert not request.client_capabilities.fs.read_text_file
    assert request.client_capabilities.fs.write_text_file
    broken = decode_params("initialize", b'{"protocolVersion":1,"clientCapabilities":5}')
    assert broken.client_capabilities == ClientCapabilities()


def test_malformed_items_of_a_lenient_list_are_skipped():
    entry = {"content": "c", "priority": "low", "status": "pending"}
    update = decoded_update({"sessionUpdate": "plan", "entries": [4, entry]})
    assert update == updates.AgentPlanUpdate(entries=[updates.PlanEntry(content="c", priority="low", status="pending")])


def test_malformed_values_of_a_lenient_enumeration_fall_back():
    call = decoded_update({**CALL, "kind": "sing", "status": "odd"})
    assert (call.kind, call.status) == ("other", "pending")


def test_nulls_inside_raw_input_are_kept():
    assert decoded_update({**CALL, "rawInput": {"a": None}}).raw_input == {"a": None}


def test_a_client_keeps_an_unknown_update_as_it_came():
    update = {"sessionUpdate": "dance", "step": [1, {"to": None}]}
    assert decode_params(
        "session/update", encode({"sessionId": "s", "update": update})
    ).update == updates.UnknownUpdate(raw=update)


def test_a_client_keeps_unknown_content_as_it_came():
    block = {"type": "hologram", "data": "x"}
    chunk = {"sessionUpdate": "agent_message_chunk", "content": block}
    update = decoded_update(chunk)
    assert update == updates.AgentMessageChunk(content=content.UnknownContent(raw=block))


def test_an_empty_tag_is_an_unknown_one():
    block = {"type": "", "raw": {"type": "text"}, "_meta": {}}
    chunk = {"sessionUpdate": "agent_message_chunk", "content": block}
    update = decoded_update(chunk)
    assert update.content.raw == block


def test_servers_are_told_apart_by_their_type():
    servers = [
        {"name": "a", "command": "c"},
        {"type": "stdio", "name": "a", "command": "c", "args": None},
        {"type": "http", "name": "h", "url": "u", "headers": [{"name": "k", "value": "v"}]},
        {"type": "sse", "name": "s", "url": "u", "headers": []},
        {"type": "acp", "name": "m", "serverId": "i"},
    ]
    decoded = decode_params("session/new", encode({"cwd": "/", "mcpServers": servers})).mcp_servers
    program = mcp.McpServerStdio(name="a", command="c")
    assert decoded[:2] == [program, program]
    assert decoded[2] == mcp.McpServerHttp(name="h", url="u", headers=[mcp.HttpHeader(name="k", value="v")])
    assert decoded[3:] == [mcp.McpServerSse(name="s", url="u"), mcp.McpServerAcp(name="m", server_id="i")]


def test_authentication_methods_are_told_apart_by_their_type():
    methods = [{"id": "a", "name": "A"}, {"type": "terminal", "id": "t", "name": "T", "env": {"K": "v"}}, 5]
    decoded = decode_result("initialize", encode({"protocolVersion": 1, "authMethods": methods})).auth_methods
    assert decoded == [AuthMethodAgent(id="a", name="A"), AuthMethodTerminal(id="t", name="T", env={"K": "v"})]


def test_a_selection_holds_values_or_groups_but_not_both():
    value, group = {"value": "v", "name": "V"}, {"group": "g", "name": "G", "options": [{"value": "w", "name": "W"}]}

    def decoded(*options: Any) -> Any:
        option = {"type": "select", "id": "i", "name": "N", "currentValue": "v", "options": options}
        return decode_result("session/set_config_option", encode({"configOptions": [option]})).config_options

    assert isinstance(decoded(value)[0].options[0], session.SessionConfigSelectOption)
    assert decoded(group)[0].options[0].options == [session.SessionConfigSelectOption(value="w", name="W")]
    assert decoded(value, group) == []


def test_a_title_that_is_null_is_not_a_title_that_is_missing():
    def title(**fields: Any) -> Any:
        return decoded_update({"sessionUpdate": "session_info_update", **fields}).title

    assert title() is msgspec.UNSET
    assert title(title=None) is None
    assert title(title=5) is msgspec.UNSET
    assert title(title="t") == "t"


def test_half_a_character_becomes_the_replacement_character():
    raw = b'{"sessionId":"s","prompt":[{"type":"text","text":"a\\ud83d \\ude00 \\ud83d\\ude00"}]}'
    assert decode_params("session/prompt", raw).prompt[0].text == "a\ufffd \ufffd \U0001f600"


@pytest.mark.parametrize(
    "inner",
    [b"[" * 5000 + b"]" * 5000, b'"\xff"', b"1e999"],
    ids=["nested too deeply", "not UTF-8", "a number out of range"],
)
def test_json_that_cannot_be_used_is_refused(inner):
    with pytest.raises(InvalidParams, match=r"^params is "):
        decode_params("session/prompt", b'{"sessionId":"s","prompt":[],"_meta":{"a":%b}}' % inner)
