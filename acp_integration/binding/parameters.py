"""What the protocol itself supplies: contexts, the request, its fields, an extension's params."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from inspect import Parameter
from typing import Any, Final, get_origin

import msgspec

from acp_integration import sdk
from acp_integration.binding import annotations
from acp_integration.binding.extension import params_decoder
from acp_integration.binding.faults import HandlerSite
from acp_integration.context import AcpSession, ConnectedClient, PromptContext, SyncAcpSession, SyncPromptContext
from acp_integration.context.bridge import ThreadBridge
from acp_integration.context.invocation import Invocation
from acp_integration.jsonrpc import encode
from acp_integration.wire import methods
from acp_integration.wire.decoding import PARAMS, InvalidParams

_TURN: Final = frozenset({PromptContext, SyncPromptContext})
_SESSION: Final = frozenset({AcpSession, SyncAcpSession})
_BY_NAME: Final = {"turn": "turn", "context": "turn", "session": "session", "client": "client", "request": "request"}
_HAVE_SESSION: Final = frozenset(
    {
        methods.SESSION_NEW,
        methods.SESSION_LOAD,
        methods.SESSION_RESUME,
        methods.SESSION_CLOSE,
        methods.SESSION_PROMPT,
        methods.SESSION_SET_MODE,
        methods.SESSION_SET_CONFIG_OPTION,
        methods.SESSION_CANCEL,
    }
)
_PLAIN: Final = (Parameter.empty, Any, object, str, bool, list, tuple, dict, Sequence, Mapping)
_OTHER_NAMES: Final = {"config_value": "value"}


class Kind(Enum):
    """The kinds of values that the plan of a handler must know of."""

    PLAIN = auto()
    SDK_MODEL = auto()
    EXTENSION_PARAMS = auto()
    SESSION = auto()


class Supplied(msgspec.Struct, frozen=True):
    """What gives the value of a parameter, and what kind of value it is."""

    get: Callable[[Invocation], Any]
    kind: Kind = Kind.PLAIN


def find_supplier(site: HandlerSite, parameter: Parameter, *, sync: bool) -> Supplied | None:
    """What supplies a parameter; None leaves it at its default.

    Raises:
        HandlerError: naming the parameter, and what to do.
    """
    if parameter.annotation in (Parameter.empty, Any, object):
        found = _by_name(site, parameter, sync=sync)
    else:
        found = _by_annotation(site, parameter, sync=sync)
    found = found or _field(site, parameter) or _extension_params(site, parameter)
    if found is None and parameter.default is Parameter.empty:
        raise _unknown(site, parameter)
    return found


def _by_name(site: HandlerSite, parameter: Parameter, *, sync: bool) -> Supplied | None:
    meaning = _BY_NAME.get(parameter.name)
    if meaning == "turn":
        return _turn(site, parameter.name, sync=sync)
    if meaning == "session":
        return _session(site, parameter.name, sync=sync)
    if meaning == "client":
        return Supplied(lambda invocation: invocation.client)
    if meaning == "request" and site.method in PARAMS:
        return Supplied(lambda invocation: invocation.request, Kind.SDK_MODEL)
    return None


def _by_annotation(site: HandlerSite, parameter: Parameter, *, sync: bool) -> Supplied | None:
    choices = annotations.choices(parameter.annotation)
    if not _TURN.isdisjoint(_hashable(choices)):
        _refuse_other_kind(site, parameter, choices, sync=sync)
        return _turn(site, parameter.name, sync=sync)
    if not _SESSION.isdisjoint(_hashable(choices)):
        _refuse_other_kind(site, parameter, choices, sync=sync)
        return _session(site, parameter.name, sync=sync)
    if ConnectedClient in choices:
        return Supplied(lambda invocation: invocation.client)
    models = {name for choice in choices if (name := annotations.model_name(choice)) and sdk.is_model_name(name)}
    return _model(site, parameter.name, models) if models else None


def _turn(site: HandlerSite, name: str, *, sync: bool) -> Supplied:
    if site.method != methods.SESSION_PROMPT:
        raise site.fault(f"{site.method} has no turn: take the session, or make this the on.prompt handler", name)
    return Supplied(_blocking_turn) if sync else Supplied(lambda invocation: invocation.turn)


def _blocking_turn(invocation: Invocation) -> Any:
    return None if invocation.turn is None else SyncPromptContext(invocation.turn)


def _session(site: HandlerSite, name: str, *, sync: bool) -> Supplied:
    if site.method not in _HAVE_SESSION:
        raise site.fault(f"{site.method} has no open session: take session_id: str if its params name one", name)
    return Supplied(_blocking_session if sync else lambda invocation: invocation.session, Kind.SESSION)


def _blocking_session(invocation: Invocation) -> SyncAcpSession:
    bridge = invocation.turn.bridge if invocation.turn is not None else ThreadBridge(invocation.call)
    return SyncAcpSession(invocation.session, bridge)


def _refuse_other_kind(site: HandlerSite, parameter: Parameter, choices: tuple[Any, ...], *, sync: bool) -> None:
    for choice in choices:
        if sync and choice in (PromptContext, AcpSession):
            fix = f"declare it as Sync{choice.__name__}, or the handler as async def"
            raise site.fault(f"a {choice.__name__} is awaited, and this handler is not async: {fix}", parameter.name)
        if not sync and choice in (SyncPromptContext, SyncAcpSession):
            fix = f"declare it as {choice.__name__.removeprefix('Sync')}, or the handler as a plain def"
            raise site.fault(f"a {choice.__name__} would block the event loop: {fix}", parameter.name)


def _model(site: HandlerSite, name: str, models: set[str]) -> Supplied:
    if models == {"ClientCapabilities"}:
        return Supplied(_capabilities, Kind.SDK_MODEL)
    own = set(sdk.params_names(site.method)) if site.method in PARAMS else set()
    if models <= own:
        return Supplied(_checked_request(models, own), Kind.SDK_MODEL)
    wanted = " or ".join(sorted(own)) or "its params in a type of your own"
    raise site.fault(f"{' | '.join(sorted(models))} is not the request of {site.method}: take {wanted}", name)


def _checked_request(models: set[str], own: set[str]) -> Callable[[Invocation], Any]:
    if models == own:
        return lambda invocation: invocation.request

    def request(invocation: Invocation) -> Any:
        found = invocation.request
        if type(found).__name__ not in models:
            raise InvalidParams("params", "is of a kind that this agent does not take")
        return found

    return request


def _capabilities(invocation: Invocation) -> Any:
    return sdk.validate("ClientCapabilities", encode(invocation.client.capabilities or {}))


def _field(site: HandlerSite, parameter: Parameter) -> Supplied | None:
    """A field of the params, by its name; its annotation, if any, says which kinds of value are taken."""
    struct = PARAMS.get(site.method)
    name = _OTHER_NAMES.get(parameter.name, parameter.name)
    if struct is None or name not in struct.__struct_fields__ or not _is_plain(parameter.annotation):
        return None
    taken = [choice for choice in annotations.choices(parameter.annotation) if choice in (str, bool)]
    if name == "value" and len(taken) == 1:
        return Supplied(_typed_value(taken[0]))
    if name == "meta":
        return Supplied(lambda invocation: invocation.params.meta or {})
    return Supplied(lambda invocation: getattr(invocation.params, name))


def _is_plain(annotation: Any) -> bool:
    """Whether an annotation leaves it to the name which field is meant."""
    kinds = (get_origin(choice) or choice for choice in annotations.choices(annotation))
    return all(kind in _PLAIN for kind in kinds)


def _typed_value(kind: type) -> Callable[[Invocation], Any]:
    problem = "must be a string" if kind is str else "must be true or false"

    def value(invocation: Invocation) -> Any:
        if not isinstance(invocation.params.value, kind):
            raise InvalidParams("params.value", problem)
        return invocation.params.value

    return value


def _extension_params(site: HandlerSite, parameter: Parameter) -> Supplied | None:
    if not site.method.startswith("_") or parameter.name in ("session_id", "config_id", "config_value"):
        return None
    if annotations.is_unresolved(parameter.annotation):
        return None
    try:
        return Supplied(params_decoder(parameter.annotation), Kind.EXTENSION_PARAMS)
    except TypeError:
        fix = "take a JSON type, a dataclass, a TypedDict or a pydantic model"
        raise site.fault(f"{parameter.annotation!r} cannot be read from JSON: {fix}", parameter.name) from None


def _hashable(choices: tuple[Any, ...]) -> list[Any]:
    return [choice for choice in choices if isinstance(choice, type)]


def _unknown(site: HandlerSite, parameter: Parameter) -> Exception:
    if annotations.is_unresolved(parameter.annotation):
        text = parameter.annotation if isinstance(parameter.annotation, str) else parameter.annotation.__name__
        fix = "import it in the module, not only under TYPE_CHECKING or inside a function"
        return site.fault(f"the annotation {text!r} cannot be resolved: {fix}", parameter.name)
    if parameter.name == "session_id":
        return site.fault(f"{site.method} names no session: remove the parameter", parameter.name)
    if parameter.name in ("config_id", "value", "config_value"):
        return site.fault("only on.set_config_option has a config option: remove the parameter", parameter.name)
    fields: Mapping[str, Any] | tuple[str, ...] = getattr(PARAMS.get(site.method), "__struct_fields__", ())
    known = ", ".join(["turn" if site.method == methods.SESSION_PROMPT else "client", *fields])
    fix = f"use one of {known}, give it a default, or add an argument resolver"
    return site.fault(f"nothing supplies it: {fix}", parameter.name)
