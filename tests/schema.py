"""The official JSON schema as a judge: of single messages, and of everything that went over a connection."""

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator

Side = Literal["agent", "client"]
Part = Literal["params", "result"]

REPO_ROOT = Path(__file__).resolve().parent.parent
SCHEMA = Path("@agentclientprotocol", "sdk", "schema", "v1", "schema.unstable.json")
OTHER_SIDE: Mapping[Side, Side] = {"agent": "client", "client": "agent"}


def schema_file() -> Path:
    """The schema in the npm package of the official SDK; fails when that is not installed."""
    folders = [REPO_ROOT / ".peers" / "node_modules", REPO_ROOT / "node_modules"]
    if peers := os.environ.get("ACP_PEERS"):
        folders.append(Path(peers))
    for folder in folders:
        if (folder / SCHEMA).is_file():
            return folder / SCHEMA
    raise AssertionError("the official JSON schema is missing: run `make setup`, or name its node_modules in ACP_PEERS")


@cache
def definitions() -> dict[str, Any]:
    """The definitions of the schema, unstable ones included; not to be changed."""
    return json.loads(schema_file().read_text())["$defs"]


@cache
def definition_names() -> Mapping[tuple[str, Part, str], str]:
    """Which definition describes the params or the result of a method, by receiving side, part and method."""
    names: dict[tuple[str, Part, str], str] = {}
    for name, definition in definitions().items():
        if "x-method" in definition:
            part: Part = "result" if name.endswith("Response") else "params"
            names[definition["x-side"], part, definition["x-method"]] = name
    return names


def validator(name: str, amended: Mapping[str, Any] | None = None) -> Draft202012Validator:
    """What judges a value by one definition of the official schema, or of an amended one."""
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": amended or definitions()})


@cache
def _official(name: str) -> Draft202012Validator:
    return validator(name)


def problems_of(value: Any, name: str) -> list[str]:
    """What the official schema has against a value, one line for each place."""
    return [f"{name}{error.json_path[1:]}: {error.message}" for error in _official(name).iter_errors(value)]


class WireLog:
    """Judges the frames of one connection in the order they were sent: envelopes, params, and results by their request.

    Methods that start with `_` may carry anything; every other method must be one of the protocol's.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[Side, Any], str] = {}

    def check(self, frame: bytes | str | Mapping[str, Any], sender: Side) -> None:
        """Judge one frame; AssertionError says what is wrong with it."""
        message = dict(frame) if isinstance(frame, Mapping) else json.loads(frame)
        assert isinstance(message, dict), f"no JSON object: {message!r}"
        assert message.get("jsonrpc") == "2.0", f'"jsonrpc" is not "2.0": {message!r}'
        problems = self._call(message, sender) if "method" in message else self._answer(message, sender)
        assert not problems, "\n".join([*problems, f"in what the {sender} sent: {json.dumps(message)[:2000]}"])

    def unanswered(self) -> list[str]:
        """The methods of the requests that have no answer yet."""
        return list(self._open.values())

    def _call(self, message: dict[str, Any], sender: Side) -> list[str]:
        method = message["method"]
        problems = _unexpected(message, {"jsonrpc", "id", "method", "params"})
        if "id" in message:
            if (sender, message["id"]) in self._open:
                problems.append(f"the id {message['id']!r} is in use")
            self._open[sender, message["id"]] = method
        return problems + judge(message.get("params", {}), method, "params", OTHER_SIDE[sender])

    def _answer(self, message: dict[str, Any], sender: Side) -> list[str]:
        problems = _unexpected(message, {"jsonrpc", "id", "result", "error"})
        if ("result" in message) == ("error" in message):
            return [*problems, "neither or both of result and error"]
        if message.get("id") is None and "error" in message:
            return problems + problems_of(message["error"], "Error")
        method = self._open.pop((OTHER_SIDE[sender], message.get("id")), None)
        if method is None:
            return [*problems, f"no open request has the id {message.get('id')!r}"]
        if "error" in message:
            return problems + problems_of(message["error"], "Error")
        return problems + judge(message["result"], method, "result", sender)


def judge(value: Any, method: str, part: Part, receiver: Side) -> list[str]:
    """What the schema has against the params or the result of a method that the receiving side serves."""
    if method.startswith("_"):
        return []
    names = definition_names()
    name = next((names[side, part, method] for side in (receiver, "protocol") if (side, part, method) in names), None)
    if name is None:
        return [] if method.startswith("mcp/") else [f"the {receiver} has no method {method}"]
    return problems_of(value, name)


def validate_frame(frame: bytes | str | Mapping[str, Any], sender: Side, *, answers: str | None = None) -> None:
    """Judge one frame by itself; `answers` is the method of the request that a response belongs to."""
    log = WireLog()
    message = dict(frame) if isinstance(frame, Mapping) else json.loads(frame)
    if answers is not None:
        log._open[OTHER_SIDE[sender], message["id"]] = answers
    log.check(message, sender)


def validate_log(frames: Iterable[tuple[Side, bytes | str | Mapping[str, Any]]]) -> WireLog:
    """Judge all frames of a connection, each with the side that sent it, in the order they were sent."""
    log = WireLog()
    for sender, frame in frames:
        log.check(frame, sender)
    return log


def _unexpected(message: Mapping[str, Any], known: set[str]) -> list[str]:
    return [f"an unexpected field {key!r}" for key in message if key not in known]
