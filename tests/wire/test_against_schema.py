"""Decoding and the official schema accept and refuse the same messages; what is encoded is valid."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from acp_integration.jsonrpc import encode
from acp_integration.wire.decoding import PARAMS, RESULTS, decode_params, decode_result
from acp_integration.wire.repair import Malformed
from acp_integration.wire.structure import Unknown
from tests.schema import definition_names, definitions, judge, problems_of
from tests.wire.deviations import DEVIATIONS, Deviation, amended_definitions
from tests.wire.generator import Generator, broken_in_one_place

DECODERS = {"params": decode_params, "result": decode_result}
TYPES = {"params": PARAMS, "result": RESULTS}
IN_SCHEMA = [key for key in definition_names() if key[0] != "proxy" and key[2] in TYPES[key[1]]]
AMENDED = amended_definitions()
WholeNumbers = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("whole", lambda _, value: type(value) is int),
)
UPDATES = {each["properties"]["sessionUpdate"]["const"]: each for each in definitions()["SessionUpdate"]["oneOf"]}
ANY = object()
DEFAULTS = [("kind", "other"), ("status", "pending"), ("type", "object")]


def amended_validator(name: str) -> Any:
    return WholeNumbers({"$ref": f"#/$defs/{name}", "$defs": AMENDED})


def decoded_or_none(part: str, method: str, value: Any) -> Any:
    try:
        decoded = DECODERS[part](method, encode(value))
    except Malformed:
        return None
    return ANY if TYPES[part][method] is Any else decoded


def accepts(part: str, method: str, value: Any) -> bool:
    return decoded_or_none(part, method, value) is not None


def holds_unknown(value: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if isinstance(value, msgspec.Struct):
        return any(holds_unknown(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return any(map(holds_unknown, value.values()))
    return isinstance(value, list) and any(map(holds_unknown, value))


def generated(name: str, seed: int) -> Any:
    generator = Generator(definitions(), Random(seed))
    return generator.broken(generator.instance(name))


def for_seeds(examples: int, check: Callable[[int], None]) -> None:
    """Run a check on random seeds, the same ones every time."""
    derandomized = settings(max_examples=examples, deadline=None, database=None, derandomize=True)
    derandomized(given(st.integers(min_value=0, max_value=2**64))(check))()


def instance(name: str, seed: int) -> Any:
    return Generator(definitions(), Random(seed)).instance(name)


def check_agreement(key: tuple[str, str, str], judge_amended: Any, value: Any) -> None:
    decoded = decoded_or_none(key[1], key[2], value)
    assert (decoded is not None) == judge_amended.is_valid(value), value
    if decoded is not None and decoded is not ANY and not holds_unknown(decoded):
        check_encoding(key, decoded)


def check_encoding(key: tuple[str, str, str], decoded: Any) -> None:
    again = encode(decoded)
    assert DECODERS[key[1]](key[2], again) == decoded
    if key[2] != "mcp/message":
        assert not problems_of(msgspec.json.decode(again), definition_names()[key])


@pytest.mark.parametrize("key", IN_SCHEMA, ids="-".join)
def test_decoders_and_amended_schema_agree_on_messages_broken_in_one_place(key):
    judge_amended = amended_validator(definition_names()[key])

    def agree(seed: int) -> None:
        valid = instance(definition_names()[key], seed)
        check_agreement(key, judge_amended, valid)
        for value in broken_in_one_place(valid):
            check_agreement(key, judge_amended, value)

    for_seeds(3, agree)


@pytest.mark.parametrize("kind", UPDATES)
def test_decoders_and_amended_schema_agree_on_each_kind_of_update_broken_in_one_place(kind):
    key = ("client", "params", "session/update")
    judge_amended = amended_validator(definition_names()[key])

    def agree(seed: int) -> None:
        update = Generator(definitions(), Random(seed)).make(UPDATES[kind])
        for broken in broken_in_one_place(update):
            check_agreement(key, judge_amended, {"sessionId": "s", "update": broken})

    for_seeds(2, agree)


@pytest.mark.parametrize("key", IN_SCHEMA, ids="-".join)
def test_decoders_and_amended_schema_agree_on_messages_broken_in_several_places(key):
    judge_amended = amended_validator(definition_names()[key])

    def agree(seed: int) -> None:
        check_agreement(key, judge_amended, generated(definition_names()[key], seed))

    for_seeds(40, agree)


def told(value: Any) -> Any:
    """A message without what says nothing: nulls, false flags, empty lists and objects, and defaults."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {key: told(item) for key, item in value.items()}
    return {key: item for key, item in items.items() if item and (key, item) not in DEFAULTS}


@pytest.mark.parametrize("key", IN_SCHEMA, ids="-".join)
def test_what_was_decoded_is_encoded_validly_without_losing_anything(key):
    _, part, method = key
    name = definition_names()[key]

    def round_trip(seed: int) -> None:
        value = instance(name, seed)
        if problems_of(value, name) or not accepts(part, method, value) or (part, method) == ("result", "mcp/message"):
            return
        decoded = DECODERS[part](method, encode(value))
        if holds_unknown(decoded):
            return
        assert told(msgspec.json.decode(encode(decoded))) == told(value)
        check_encoding(key, decoded)

    for_seeds(60, round_trip)


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
