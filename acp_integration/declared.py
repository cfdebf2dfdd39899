"""What `@acp_agent` was given, in its wire form and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from acp_integration.agents import AgentDeclaration
from acp_integration.errors import HandlerError
from acp_integration.types import to_wire
from acp_integration.wire import repair
from acp_integration.wire.capabilities import AuthMethod
from acp_integration.wire.repair import Malformed, choose, describe
from acp_integration.wire.session import SessionConfigOption, SessionMode

Wire = Mapping[str, Any]


class Declared(msgspec.Struct, frozen=True):
    """The parts of a declaration that clients see, each in its wire form.

    Attributes:
        for_sdk: whether the agent is a class written for the official SDK: it asks for authentication itself where it
            needs it, and may announce what it does not define.
    """

    auth_methods: tuple[Wire, ...]
    modes: tuple[Wire, ...]
    config: tuple[Wire, ...]
    for_sdk: bool = False

    @property
    def agent_auth_methods(self) -> tuple[Wire, ...]:
        """The ways to authenticate that the agent serves itself, by its `on.authenticate` handler."""
        return tuple(method for method in self.auth_methods if method.get("type") != "terminal")


def read_declaration(declaration: AgentDeclaration) -> Declared:
    """Bring a declaration into its wire form.

    Raises:
        HandlerError: naming the argument of `@acp_agent` that is wrong, and how.
    """
    auth_methods = _read("auth_methods", [_auth_method(method) for method in declaration.auth_methods], AuthMethod)
    modes = _read("modes", [_mode(mode) for mode in declaration.modes], SessionMode)
    config = _read("config_options", [_option(option) for option in declaration.config_options], SessionConfigOption)
    return Declared(auth_methods, modes, config)


def _read(argument: str, values: Sequence[Wire], expected: Any) -> tuple[Wire, ...]:
    seen: set[Any] = set()
    for position, value in enumerate(values):
        place = f"@acp_agent: {argument}[{position}]"
        try:
            msgspec.convert(repair.repair(value, describe(expected), place), expected, dec_hook=choose)
        except Malformed as error:
            raise HandlerError(str(error)) from None
        if value["id"] in seen:
            raise HandlerError(f"{place}.id {value['id']!r} is there twice: each has its own")
        seen.add(value["id"])
    return tuple(values)


def _mode(mode: Any) -> Wire:
    return {"id": mode, "name": mode.replace("_", " ").capitalize()} if isinstance(mode, str) else to_wire(mode)


def _option(option: Any) -> Wire:
    """A config option; one without a type is boolean if its value is, else a selection of its first value."""
    wire = to_wire(option)
    if "type" not in wire:
        wire = {**wire, "type": "select" if "options" in wire else "boolean"}
    if wire["type"] == "select" and "currentValue" not in wire:
        wire = {**wire, "currentValue": _first_value(wire.get("options"))}
    return {"currentValue": False, **wire} if wire["type"] == "boolean" else wire


def _first_value(options: Any) -> Any:
    for option in options if isinstance(options, list | tuple) else ():
        return _first_value(option["options"]) if "options" in option else option.get("value")
    return None


def _auth_method(method: Any) -> Wire:
    wire = to_wire(method)
    env = wire.get("env")
    if isinstance(env, list | tuple):
        bad = next((entry for entry in env if not isinstance(entry, str) or "=" not in entry[1:]), None)
        if bad is not None:
            raise HandlerError(f"@acp_agent: the env entry {bad!r} of auth method {wire.get('id')!r} is not NAME=value")
        wire = {**wire, "env": dict(entry.split("=", 1) for entry in env)}
    return wire
