"""Any settings, written in any of the ways a user may write them, are read back equal."""

import json
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from acp_integration import AcpAgentSettings, AcpClientSettings
from acp_integration.configuration.keys import environment_name
from acp_integration.configuration.schema import schema_of

PRINTABLE = st.characters(exclude_categories=("C",))
ANY_TEXT = st.text(PRINTABLE)
TEXT = ANY_TEXT.map(str.strip).filter(bool)
WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1)
HOST = st.builds("{}{}".format, WORD, st.sampled_from(["", ".example", ":8080"])) | st.just("[::1]:80")
PATH = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="?#")).map("/{}".format)
TYPES = st.sampled_from(["stdio", "websocket", "http"])
DURATIONS = st.timedeltas(timedelta(0), timedelta(days=99999))
NUMBERS = st.integers(1, 10**17)


def lists(items):
    return st.lists(items, max_size=3).map(tuple)


VALUES = {
    "true or false": st.booleans(),
    "text": TEXT,
    "integer above 0": NUMBERS,
    "port": st.integers(0, 65535),
    "size": st.integers(1, 2**63 - 1) | st.sampled_from([1024, 5 * 1024**2, 3 * 1024**3]),
    "duration": DURATIONS,
    "duration above 0": DURATIONS.filter(bool),
    "list": lists(ANY_TEXT),
    "list of names": lists(TEXT),
    "list of origins": lists(
        st.builds("{}://{}".format, WORD.filter(lambda word: word[0].isalpha()), HOST) | st.just("*")
    ),
    "list of hosts": lists(HOST),
    "list of absolute paths": lists(PATH),
    "path": PATH,
    "ws or wss URI": st.builds("{}://{}/acp".format, st.sampled_from(["ws", "wss"]), HOST),
    "http or https URI": st.builds("{}://{}/acp".format, st.sampled_from(["http", "https"]), HOST),
    "`none`, `memory:`, `sqlite:///path` or `django`": st.sampled_from(["none", "memory:", "django", "sqlite:///a b"]),
    "`none` or `module:name`": st.sampled_from(["none", "shop.pools:threads"]),
    "`stdio`, `websocket` or `http`": TYPES,
    "secret text": TEXT.map(SecretStr),
    "secret text by name": st.dictionaries(st.text(PRINTABLE, min_size=1), ANY_TEXT, max_size=3),
}


@st.composite
def key_values(draw, model):
    """Some keys of a settings class with a value each, by path."""
    keys = schema_of(model).keys
    chosen = draw(st.sets(st.sampled_from(sorted(keys)), max_size=12))
    return {path: draw(VALUES[keys[path].kind.label]) for path in sorted(chosen)}


def nested(values):
    tree = {}
    for path, value in values.items():
        *parents, last = (segment.replace("-", "_") for segment in path)
        reduce(lambda section, name: section.setdefault(name, {}), parents, tree)[last] = value
    return tree


def native(value):
    """What a mapping or a TOML file holds: text, numbers, lists and tables."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, timedelta):
        return duration_text(value)
    return list(value) if isinstance(value, tuple) else value


def duration_text(value):
    milliseconds, rest = divmod(value, timedelta(milliseconds=1))
    if not rest:
        return f"{milliseconds // 1000}s" if not milliseconds % 1000 else f"{milliseconds}ms"
    microseconds = value // timedelta(microseconds=1)
    return f"PT{microseconds // 10**6}.{microseconds % 10**6:06d}S"


def text(value):
    """What a variable holds."""
    value = native(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def toml(value):
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quoted(name)} = {toml(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def quoted(value):
    return json.dumps(value, ensure_ascii=False)


CLASSES = [AcpAgentSettings, AcpClientSettings]


@pytest.mark.parametrize("model", CLASSES)
@settings(deadline=None)
@given(data=st.data())
def test_written_as_environment(model, data):
    values = data.draw(key_values(model))
    prefix = model.default_prefix.split(".")
    environ = {environment_name(tuple(prefix), path): text(value) for path, value in values.items()}
    assert model.load(environ=environ) == model(**nested(values))


@pytest.mark.parametrize("model", CLASSES)
@settings(deadline=None)
@given(data=st.data())
def test_written_as_dotted_mapping(model, data):
    values = data.draw(key_values(model))
    mapping = {f"{model.default_prefix}.{'.'.join(path)}": native(value) for path, value in values.items()}
    assert model.from_mapping(mapping) == model(**nested(values))


@pytest.mark.parametrize("model", CLASSES)
@settings(deadline=None)
@given(data=st.data())
def test_written_as_dotted_text(model, data):
    values = data.draw(key_values(model))
    mapping = {f"{model.default_prefix}.{'.'.join(path)}": text(value) for path, value in values.items()}
    assert model.from_mapping(mapping) == model(**nested(values))


@pytest.mark.parametrize("model", CLASSES)
@settings(deadline=None)
@given(data=st.data())
def test_written_as_nested_snake_case(model, data):
    values = data.draw(key_values(model))
    tree = nested({path: native(value) for path, value in values.items()})
    root, section = model.default_prefix.split(".")
    assert model.from_mapping({root: {section: tree}}) == model(**nested(values))


@pytest.mark.parametrize("model", CLASSES)
@settings(deadline=None)
@given(data=st.data())
def test_written_as_toml(model, data):
    values = data.draw(key_values(model))
    _, section = model.default_prefix.split(".")
    lines = [f"{section}.{'.'.join(path)} = {toml(native(value))}" for path, value in values.items()]
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "acp.toml").write_text("\n".join(lines), encoding="utf-8")
        assert model.load(environ={}, files=directory) == model(**nested(values))


def test_every_kind_of_value_is_written():
    labels = {key.kind.label for model in CLASSES for key in schema_of(model).keys.values()}
    assert labels == set(VALUES)


@pytest.mark.parametrize("model", CLASSES)
def test_no_two_keys_share_a_variable(model):
    keys = schema_of(model).keys
    assert len({environment_name(path) for path in keys}) == len(keys)
