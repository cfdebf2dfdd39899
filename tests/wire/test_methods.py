"""The tables of methods say what the official schema says."""

import json

from acp_integration.wire.decoding import PARAMS, RESULTS
from acp_integration.wire.methods import AGENT_METHODS, CLIENT_METHODS
from tests.schema import definition_names, definitions, schema_file

# Drafts that are not served: proxies, archives, the status of sessions and of authentication.
NOT_OURS = {
    "auth/status",
    "auth/status_update",
    "session/archive",
    "session/unarchive",
    "session/status",
    "session/set_title",
}
OLDER_MCP = {"mcp/connect", "mcp/disconnect"}
EITHER_SIDE = {"$/cancel_request"}


def official(side: str) -> set[str]:
    return {method for receiver, part, method in definition_names() if receiver == side and part == "params"}


def test_each_side_receives_the_methods_of_the_schema():
    assert set(AGENT_METHODS) - OLDER_MCP - EITHER_SIDE == official("agent") - NOT_OURS
    assert set(CLIENT_METHODS) - OLDER_MCP - EITHER_SIDE == official("client") - NOT_OURS


def test_a_method_is_filed_under_its_name():
    for table in (AGENT_METHODS, CLIENT_METHODS):
        assert all(method.name == name for name, method in table.items())


def test_every_method_has_params_and_every_request_a_result():
    known = {**AGENT_METHODS, **CLIENT_METHODS}
    assert set(PARAMS) == set(known)
    assert set(RESULTS) == {name for name, method in known.items() if method.kind != "notification"}


def test_a_method_belongs_to_a_session_when_its_params_name_one():
    for side, table in (("agent", AGENT_METHODS), ("client", CLIENT_METHODS)):
        for name in set(table) & official(side):
            definition = definitions()[definition_names()[side, "params", name]]
            named = "sessionId" in definition["properties"] or name == "elicitation/create"
            assert table[name].session == named, name


def test_a_method_is_stable_when_the_stable_schema_has_it():
    stable = json.loads(schema_file().with_name("schema.json").read_text())["$defs"].values()
    names = {definition["x-method"] for definition in stable if "x-method" in definition}
    for name, method in {**AGENT_METHODS, **CLIENT_METHODS}.items():
        assert method.stable == (name in names), name
