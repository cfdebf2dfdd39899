"""Where decoding differs from the official schema on purpose: one row a reason.

Each row amends the schema, so that the amended schema and the decoders agree on everything, and gives an example on
which the official schema and the decoders disagree.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.schema import Part, Side, definitions

Definitions = dict[str, Any]

ANY_LATER_STRING = {"type": "string"}


@dataclass(frozen=True)
class Deviation:
    """One difference.

    Attributes:
        reason: why it is right.
        amend: makes the schema say what the decoders do.
        receiver: the side that receives the example.
        part: whether the example is params or a result.
        method: the method of the example.
        example: a value that exactly one of schema and decoders accepts.
    """

    reason: str
    amend: Callable[[Definitions], None]
    receiver: Side
    part: Part
    method: str
    example: Any


def amended_definitions() -> Definitions:
    """The official definitions with every deviation built in."""
    amended = deepcopy(definitions())
    for deviation in DEVIATIONS:
        deviation.amend(amended)
    return amended


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)


def _properties(schema: Any) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    for owner in list(_objects(schema)):
        for key, value in (owner.get("properties") or {}).items():
            if isinstance(value, dict):
                yield owner, key, value


def _not_required(owner: dict[str, Any], key: str) -> None:
    if key in owner.get("required", ()):
        owner["required"] = [each for each in owner["required"] if each != key]


def malformed_optional_fields_are_forgiven(schema: Definitions) -> None:
    for owner, key, value in _properties(schema):
        if value.get("x-deserialize-default-on-error"):
            owner["properties"][key] = {"x-was": value}


def missing_lists_are_empty(schema: Definitions) -> None:
    for owner, key, value in _properties(schema):
        official = value.get("x-was", value)
        if "array" in (official.get("type") or ()) and (
            official.get("x-deserialize-default-on-error") or official.get("x-deserialize-default-on-null")
        ):
            _not_required(owner, key)


def null_lists_are_empty(schema: Definitions) -> None:
    for owner, key, value in _properties(schema):
        if value.get("x-deserialize-default-on-null"):
            owner["properties"][key] = {"anyOf": [value, {"type": "null"}]}


def a_whole_number_has_no_fraction(schema: Definitions) -> None:
    for each in _objects(schema):
        kinds = each.get("type")
        if kinds == "integer":
            each["type"] = "whole"
        elif isinstance(kinds, list):
            each["type"] = ["whole" if kind == "integer" else kind for kind in kinds]


def unknown_kinds_of_server_are_refused(schema: Definitions) -> None:
    schema["McpServerStdio"]["properties"]["type"] = {"enum": ["stdio", None]}


def newer_updates_stay_raw(schema: Definitions) -> None:
    known = schema["SessionUpdate"]["oneOf"]
    ours = [each for each in known if not _tag(each, "sessionUpdate").startswith(("subagent", "session_message"))]
    tags = [_tag(each, "sessionUpdate") for each in ours]
    schema["SessionUpdate"] = {"anyOf": [*ours, _newer("sessionUpdate", tags)]}


def newer_content_stays_raw_for_clients(schema: Definitions) -> None:
    known = schema["ContentBlock"]["oneOf"]
    newer = _newer("type", [_tag(each, "type") for each in known])
    schema["ReceivedContent"] = {"anyOf": [{"$ref": "#/$defs/ContentBlock"}, newer]}
    for name in ("ContentChunk", "CompactionSummaryChunk"):
        schema[name]["properties"]["content"] = {"$ref": "#/$defs/ReceivedContent"}


def unknown_ways_to_ask_are_refused(schema: Definitions) -> None:
    request = schema["CreateElicitationRequest"]
    request["anyOf"] = [each for each in request["anyOf"] if "const" in each["properties"]["mode"]]


def a_malformed_session_is_not_excused_by_a_request(schema: Definitions) -> None:
    schema["CreateElicitationRequest"]["properties"]["sessionId"] = {"type": ["string", "null"]}


def the_older_shape_of_mcp_messages_is_taken_too(schema: Definitions) -> None:
    older = {
        "type": "object",
        "properties": {
            "connectionId": {"type": "string"},
            "serverId": {"type": ["string", "null"]},
            "requestId": {"type": ["string", "null"]},
            "method": {"type": "string"},
            "params": {"type": ["object", "null"]},
        },
        "required": ["connectionId", "method"],
    }
    for name in ("MessageMcpRequest", "MessageMcpNotification"):
        newer = schema[name]
        newer["properties"]["connectionId"] = {"type": ["string", "null"]}
        schema[name] = {"anyOf": [newer, older]}


def any_mcp_result_is_passed_on(schema: Definitions) -> None:
    schema["MessageMcpResponse"] = {}


def null_is_an_empty_object(schema: Definitions) -> None:
    for name, definition in list(schema.items()):
        if "x-method" in definition and not definition.get("required") and name != "CreateElicitationResponse":
            schema[name] = {"anyOf": [definition, {"type": "null"}]}


def _tag(variant: dict[str, Any], field: str) -> str:
    return str(variant["properties"][field]["const"])


def _newer(field: str, known: list[str]) -> dict[str, Any]:
    tag = {"type": "string", "not": {"enum": known}}
    return {"type": "object", "properties": {field: tag}, "required": [field]}


CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}
STDIO = {"name": "n", "command": "c", "args": [], "env": []}
PAGE = {"mode": "url", "message": "m", "elicitationId": "e", "url": "https://example.org"}

DEVIATIONS = [
    Deviation(
        "The schema asks receivers to forgive what it marks so: the field counts as missing, its list loses the item.",
        malformed_optional_fields_are_forgiven,
        *("agent", "params", "initialize", {"protocolVersion": 1, "clientCapabilities": {"terminal": "yes"}}),
    ),
    Deviation(
        "Clients in the field leave out lists that are required; an empty one is all they can mean.",
        missing_lists_are_empty,
        *("agent", "params", "session/new", {"cwd": "/tmp"}),
    ),
    Deviation(
        "The schema marks lists that may be null for empty.",
        null_lists_are_empty,
        *("agent", "params", "session/new", {"cwd": "/tmp", "mcpServers": None}),
    ),
    Deviation(
        "A number with a fraction is never coerced to an integer, not even 1.0.",
        a_whole_number_has_no_fraction,
        *("agent", "params", "initialize", {"protocolVersion": 1.0}),
    ),
    Deviation(
        "A server of an unknown type is not a program to start, whatever fields it has.",
        unknown_kinds_of_server_are_refused,
        *("agent", "params", "session/new", {"cwd": "/tmp", "mcpServers": [{"type": "ftp", **STDIO}]}),
    ),
    Deviation(
        "A client shows newer updates as they came rather than losing them; those of subagents among them.",
        newer_updates_stay_raw,
        *("client", "params", "session/update", {"sessionId": "s", "update": {"sessionUpdate": "dance"}}),
    ),
    Deviation(
        "A client shows newer content as it came rather than losing it.",
        newer_content_stays_raw_for_clients,
        *("client", "params", "session/update", {"sessionId": "s", "update": CHUNK}),
    ),
    Deviation(
        "A mode of elicitation that nobody knows was never announced, and the specification refuses those.",
        unknown_ways_to_ask_are_refused,
        *("client", "params", "elicitation/create", {"mode": "dance", "message": "m", "sessionId": "s"}),
    ),
    Deviation(
        "A malformed session id is refused, although a request id beside it would do.",
        a_malformed_session_is_not_excused_by_a_request,
        *("client", "params", "elicitation/create", {**PAGE, "sessionId": 1, "requestId": 1}),
    ),
    Deviation(
        "Peers of an older version of the draft send MCP messages on connections.",
        the_older_shape_of_mcp_messages_is_taken_too,
        *("agent", "params", "mcp/message", {"connectionId": "c", "method": "tools/list"}),
    ),
    Deviation(
        "The older version of the draft answers an MCP message with the bare result.",
        any_mcp_result_is_passed_on,
        *("client", "result", "mcp/message", {"tools": []}),
    ),
    Deviation(
        "Null stands for an empty object where nothing is required: some peers answer so, and params may be left out.",
        null_is_an_empty_object,
        *("client", "result", "fs/write_text_file", None),
    ),
]
