"""Decoding and the official schema accept and refuse the same messages; what is encoded is valid."""

from random import Random
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from acp_integration.jsonrpc import encode
from acp_integration.wire.decoding import PARAMS, RESULTS, decode_params, decode_result
from acp_integration.wire.repair import Malformed
from acp_integration.wire.structure import Unknown
from tests.schema import definition_names, definitions, judge, problems_of
from tests.wire.deviations import DEVIATIONS, Deviation, amended_definitions
from tests.wire.generator import Generator

DECODERS = {"params": decode_params, "result": decode_result}
TYPES = {"params": PARAMS, "result": RESULTS}
IN_SCHEMA = [key for key in definition_names() if key[0] != "proxy" and key[2] in TYPES[key[1]]]
AMENDED = amended_definitions()
WholeNumbers = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("whole", lambda _, value: type(value) is int),
)
seeds = st.integers(min_value=0, max_value=2**64)


def amended_validator(name: str) -> Any:
    return WholeNumbers({"$ref": f"#/$defs/{name}", "$defs": AMENDED})


def accepts(part: str, method: str, value: Any) -> bool:
    try:
        DECODERS[part](method, encode(value))
    except Malformed:
        return False
    return True


def holds_unknown(value: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if isinstance(value, msgspec.Struct):
        return any(holds_unknown(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, list | dict):
        return any(holds_unknown(item) for item in (value.values() if isinstance(value, dict) else value))
    return False


def generated(name: str, seed: int) -> Any:
    generator = Generator(definitions(), Random(seed))
    return generator.broken(generator.instance(name))


@pytest.mark.parametrize("key", IN_SCHEMA, ids="-".join)
def test_decoders_and_amended_schema_agree_on_generated_and_broken_messages(key):
    _, part, method = key
    name = definition_names()[key]
    judge_amended = amended_validator(name)

    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(seeds)
    def agree(seed):
        value = generated(name, seed)
        problems = [f"{error.json_path}: {error.message}" for error in judge_amended.iter_errors(value)]
        assert accepts(part, method, value) == (not problems), (value, problems)

    agree()


@pytest.mark.parametrize("key", IN_SCHEMA, ids="-".join)
def test_what_was_decoded_is_encoded_validly_and_decodes_to_the_same(key):
    _, part, method = key
    name = definition_names()[key]

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(seeds)
    def round_trip(seed):
        value = generated(name, seed)
        try:
            decoded = DECODERS[part](method, encode(value))
        except Malformed:
            return
        if holds_unknown(decoded) or method == "mcp/message":
            return
        again = encode(decoded)
        assert not problems_of(msgspec.json.decode(again), name)
        assert DECODERS[part](method, again) == decoded

    round_trip()


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.amend.__name__)
def test_a_deviation_is_one(deviation: Deviation):
    valid = not judge(deviation.example, deviation.method, deviation.part, deviation.receiver)
    accepted = accepts(deviation.part, deviation.method, deviation.example)
    assert accepted != valid
    name = definition_names()[deviation.receiver, deviation.part, deviation.method]
    assert accepted == amended_validator(name).is_valid(deviation.example)


def test_every_method_we_know_is_in_the_schema_but_for_the_older_mcp_shape():
    judged = {(part, method) for _, part, method in IN_SCHEMA}
    ours = {(part, method) for part, types in TYPES.items() for method in types}
    assert ours - judged == {
        (part, method) for part in ("params", "result") for method in ("mcp/connect", "mcp/disconnect")
    }


def structs_of(expected: Any) -> set[type[msgspec.Struct]]:
    members = get_args(expected) or (expected,)
    return {member for member in members if isinstance(member, type) and issubclass(member, msgspec.Struct)}


def test_every_field_the_schema_has_is_kept():
    missing = []
    for (_, part, method), name in definition_names().items():
        official = set(definitions()[name].get("properties", ()))
        for struct in structs_of(TYPES[part].get(method)):
            missing += [f"{struct.__name__}.{key}" for key in official - set(struct.__struct_encode_fields__)]
    assert missing == []
