"""Field by field, the structs are what the definitions of the official schema are."""

import inspect as introspection
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from acp_integration.wire import agent, capabilities, client, content, elicitation, mcp, session, tools, updates
from acp_integration.wire.structure import Unknown
from tests.schema import definitions

MODULES = (agent, capabilities, client, content, elicitation, mcp, session, tools, updates)

# Structs that have a name of their own, as in the official SDK for Python.
OTHER_NAMES = {
    "AgentMessageChunk": "ContentChunk",
    "AgentPlanUpdate": "Plan",
    "AgentThoughtChunk": "ContentChunk",
    "AvailableCommandInput": "UnstructuredCommandInput",
    "ContentToolCallContent": "Content",
    "FileEditToolCallContent": "Diff",
    "TerminalToolCallContent": "Terminal",
    "ToolCallProgress": "ToolCallUpdate",
    "ToolCallStart": "ToolCall",
    "UserMessageChunk": "ContentChunk",
}
# Variants that the schema spells out where they are used, drafts it has dropped, and markers without fields.
NOT_DEFINED = {
    "CancelledPermissionOutcome",
    "ConnectMcpRequest",
    "ConnectMcpResponse",
    "CreateElicitationResponse",
    "CreateFormElicitation",
    "CreateUrlElicitation",
    "DisconnectMcpRequest",
    "DisconnectMcpResponse",
    "OtherMultiSelectItems",
    "SessionConfigOptionBoolean",
    "SessionConfigOptionSelect",
    "_Elicitation",
}


def is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and not issubclass(value, Unknown)


STRUCTS = {
    name: struct
    for module in MODULES
    for name, struct in vars(module).items()
    if is_struct(struct) and struct.__module__ == module.__name__
}
DEFINED = sorted(STRUCTS.keys() - NOT_DEFINED)


def definition_of(name: str) -> dict[str, Any]:
    return definitions()[OTHER_NAMES.get(name, name)]


def fields_of(name: str) -> dict[str, inspect.Field]:
    described = inspect.type_info(STRUCTS[name])
    assert isinstance(described, inspect.StructType)
    return {field.encode_name: field for field in described.fields}


def forgives(field: inspect.Field) -> set[str]:
    extra = field.type.extra or {} if isinstance(field.type, inspect.Metadata) else {}
    return {flag for flag, on in extra.items() if on}


def official_forgiveness(schema: dict[str, Any]) -> set[str]:
    flags = ("default-on-error", "default-on-null", "skip-invalid-items")
    return {flag.replace("-", "_") for flag in flags if schema.get(f"x-deserialize-{flag}")}


def is_any(field: inspect.Field) -> bool:
    return isinstance(field.type, inspect.AnyType)


@pytest.mark.parametrize("name", DEFINED)
def test_a_struct_has_the_fields_of_its_definition(name):
    official = set(definition_of(name).get("properties", ())) | {"_meta"}
    older_shape = {"connectionId"} if name == "MessageMcpRequest" else set()
    tag = {"type"} if name in {"SetSessionConfigOptionRequest", "StringMultiSelectItems"} else set()
    value = {"value"} if name == "SetSessionConfigOptionRequest" else set()
    assert set(fields_of(name)) - older_shape - tag - value == official


@pytest.mark.parametrize("name", DEFINED)
def test_a_field_is_forgiven_what_its_definition_forgives(name):
    fields = fields_of(name)
    for key, schema in definition_of(name).get("properties", {}).items():
        if not is_any(fields[key]):
            assert forgives(fields[key]) == official_forgiveness(schema), key


@pytest.mark.parametrize("name", DEFINED)
def test_a_field_is_required_when_its_definition_requires_it_and_it_is_no_forgiven_list(name):
    definition = definition_of(name)
    either_shape = {"serverId", "requestId"} if name == "MessageMcpRequest" else set()
    for key, field in fields_of(name).items():
        schema = definition.get("properties", {}).get(key)
        if schema is not None and key not in either_shape:
            expected = key in definition.get("required", ()) and not official_forgiveness(schema)
            assert field.required == expected, key


def test_the_exceptions_are_needed():
    assert STRUCTS.keys() >= NOT_DEFINED
    assert not NOT_DEFINED & definitions().keys() - {"CreateElicitationResponse"}
    assert set(OTHER_NAMES) <= STRUCTS.keys()


def test_every_public_struct_says_what_it_is():
    assert not [name for name, struct in STRUCTS.items() if name[0] != "_" and not introspection.getdoc(struct)]
