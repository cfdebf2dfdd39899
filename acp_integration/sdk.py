"""The one door to the official SDK's models.

Importing the SDK takes about a second, so it happens on demand: call `load` in a thread where that would be felt.
What can be told from a class or from the SDK's source is told without importing it.
"""

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from acp_integration.jsonrpc import encode
from acp_integration.wire.decoding import PARAMS, RESULTS, InvalidParams, decode_params

_MODEL_LINE: Final = re.compile(r"^(?:class (\w+)\(|(\w+) = Union\[)", re.MULTILINE)
_NULL_CLEARS: Final = {"title": "title", "updated_at": "updatedAt"}
_OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "elicitation/create": ("CreateElicitationRequest",),
    "session/set_config_option": ("SetSessionConfigOptionBooleanRequest", "SetSessionConfigOptionSelectRequest"),
}
"""The models of params that are not named as our own structs are."""


def load() -> Any:
    """The module with the SDK's models, imported if it was not yet; safe in any thread, and twice."""
    return importlib.import_module("acp.schema")


def is_loaded() -> bool:
    """Whether the SDK's models were imported already, by whomever."""
    return "acp.schema" in sys.modules


def validate(name: str, data: bytes) -> Any:
    """JSON as the model of a name.

    Raises:
        LookupError: if the installed SDK has no such model.
        InvalidParams: if it refuses the JSON.
    """
    return _validate(resolve(name), data)


def is_model(value: object) -> bool:
    """Whether the value is a pydantic model: one of the SDK, or one of the application's own."""
    return _descends(type(value), "pydantic", "BaseModel")


def is_model_class(value: object) -> bool:
    """Whether the value is a class of pydantic models."""
    return isinstance(value, type) and _descends(value, "pydantic", "BaseModel")


def as_model(kind: Any, data: bytes) -> Any:
    """JSON as a pydantic model of the application's own.

    Raises:
        InvalidParams: if the model refuses the JSON; names the place and never the value.
    """
    return _validate(kind, data, "is not what the handler takes")


def is_request_error(error: BaseException) -> bool:
    """Whether the error is the SDK's own RequestError."""
    return _descends(type(error), "acp", "RequestError")


def is_model_name(name: str) -> bool:
    """Whether a bare or dotted name ends in the name of one of the SDK's models; imports nothing."""
    return name.rpartition(".")[2] in _model_names()


def resolve(name: str) -> Any:
    """The model behind a bare or dotted name, for example ``schema.PromptRequest``; a union of models for some.

    Raises:
        LookupError: if the installed SDK has no such model.
    """
    if not is_model_name(name):
        raise LookupError(f"The installed SDK has no model named {name}")
    return getattr(load(), name.rpartition(".")[2])


def model_for(method: str) -> Any:
    """The model of a method's params; a union of models where the SDK has several.

    Raises:
        LookupError: if the installed SDK has none.
    """
    first, *others = (resolve(name) for name in params_names(method))
    for other in others:
        first |= other
    return first


def params_names(method: str) -> tuple[str, ...]:
    """The names of the models that a method's params can have; imports nothing.

    Raises:
        KeyError: if the method is not one of the protocol's.
    """
    return _OWN_NAMES.get(method) or (PARAMS[method].__name__,)


def result_for(method: str) -> Any:
    """The model of a method's result; a union of models where the SDK has several.

    Raises:
        LookupError: if the installed SDK has none, or the result of the method is any JSON value.
    """
    return resolve(getattr(RESULTS[method], "__name__", method))


def request_model(method: str, params: msgspec.Struct | msgspec.Raw | bytes) -> Any:
    """The params of a request or notification as the SDK's model.

    Args:
        method: the method they belong to.
        params: the wire struct, or the JSON.

    Raises:
        InvalidParams: if they are not the method's params, or the installed SDK refuses them.
        LookupError: if the installed SDK has no model for the method.
    """
    struct = params if isinstance(params, msgspec.Struct) else decode_params(method, params)
    return _validate(model_for(method), encode(struct))


def update_model(update: Mapping[str, Any]) -> Any:
    """A `session/update` as the SDK's model.

    Raises:
        ValueError: if the installed SDK does not know this kind of update, or refuses it.
    """
    try:
        return _validate(load().SessionNotification, encode({"sessionId": "", "update": update})).update
    except InvalidParams as error:
        raise ValueError(f"The installed SDK has no model for this update: {error}") from None


def request_error(code: int, message: str, data: Any) -> Exception:
    """The SDK's own RequestError, for code that is written for the SDK."""
    error: Exception = importlib.import_module("acp").RequestError(code, message, data)
    return error


def to_json(model: Any) -> bytes:
    """A pydantic model as JSON, under its aliases; one of the SDK without nulls, except where a null has a meaning."""
    if not _from_sdk(type(model)):
        return str(model.model_dump_json(by_alias=True)).encode()
    if _clears(model) or _clears(getattr(model, "update", None)):
        return encode(to_builtins(model))
    return str(model.model_dump_json(by_alias=True, exclude_none=True)).encode()


def to_builtins(model: Any) -> Any:
    """The same as `to_json`, as plain JSON values."""
    if not _from_sdk(type(model)):
        return model.model_dump(mode="json", by_alias=True)
    plain = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    if nested := _clears(getattr(model, "update", None)):
        plain["update"] |= nested
    return plain | _clears(model) if isinstance(plain, dict) else plain


def _clears(model: Any) -> dict[str, None]:
    """The fields of a `session_info_update` that were set to null, which clears them; pydantic drops them as nulls."""
    if not _descends(type(model), "acp", "SessionInfoUpdate"):
        return {}
    fields = model.model_fields_set
    return {key: None for name, key in _NULL_CLEARS.items() if name in fields and getattr(model, name) is None}


def _validate(model: Any, data: bytes, problem: str = "is not what the installed SDK takes") -> Any:
    pydantic = importlib.import_module("pydantic")
    try:
        return _adapter(model).validate_json(data)
    except pydantic.ValidationError as error:
        location = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        raise InvalidParams(_path(location), problem) from None


@cache
def _adapter(model: Any) -> Any:
    return importlib.import_module("pydantic").TypeAdapter(model)


def _path(location: tuple[str | int, ...]) -> str:
    return "params" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


@cache
def _model_names() -> frozenset[str]:
    """The models' names, read from the source of the SDK: looking at it takes milliseconds, importing it a second."""
    package = importlib.util.find_spec("acp")
    folders = (package and package.submodule_search_locations) or ()
    sources = [Path(folder, "schema.py") for folder in folders]
    text = "".join(source.read_text(encoding="utf-8") for source in sources if source.is_file())
    names = {name or union for name, union in _MODEL_LINE.findall(text)}
    return frozenset(name for name in names if not name.startswith("_") and name != "BaseModel")


def _descends(kind: type, package: str, name: str) -> bool:
    return any(each.__name__ == name and each.__module__.partition(".")[0] == package for each in kind.__mro__)


def _from_sdk(kind: type) -> bool:
    return any(each.__module__.partition(".")[0] == "acp" for each in kind.__mro__)
