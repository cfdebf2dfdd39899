"""Speaks the protocol over a channel, as little as the measures need of it."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.channels import Channel

UPDATE = b'"session/update"'


class Driver:
    """One client of one agent."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._ids = itertools.count(1)

    def call(self, method: str, params: dict[str, Any], session: str | None = None) -> tuple[Any, int]:
        """A request's result, and how many updates came before it."""
        identifier, updates = self.send(method, params, session), 0
        while True:
            for frame in self.channel.receive():
                if UPDATE in frame:
                    updates += 1
                elif (answer := json.loads(frame)).get("id") == identifier:
                    return _result(answer), updates

    def send(self, method: str, params: dict[str, Any], session: str | None = None) -> int:
        """Send a request; its id."""
        identifier = next(self._ids)
        message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
        self.channel.send(json.dumps(message, separators=(",", ":")).encode(), session)
        return identifier

    def initialize(self) -> None:
        result, _ = self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert result["protocolVersion"] == 1, result

    def new_session(self) -> str:
        result, _ = self.call("session/new", {"cwd": "/", "mcpServers": []})
        session: str = result["sessionId"]
        self.channel.join(session)
        return session

    def new_sessions(self, count: int) -> Sequence[str]:
        return [self.new_session() for _ in range(count)]

    def prompt(self, session: str, text: str = "hello") -> int:
        """One turn; how many updates it had."""
        result, updates = self.call("session/prompt", prompt_params(session, text), session)
        assert result["stopReason"] == "end_turn", result
        return updates

    def start(self, session: str, text: str = "hello") -> int:
        """Begin a turn; the id of its request."""
        return self.send("session/prompt", prompt_params(session, text), session)

    def answers(self) -> Iterator[int | None]:
        """The ids of the answers as they come, None for an update."""
        while True:
            for frame in self.channel.receive():
                if UPDATE in frame:
                    yield None
                else:
                    answer = json.loads(frame)
                    _result(answer)
                    yield answer["id"]


def prompt_params(session: str, text: str) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def _result(answer: dict[str, Any]) -> Any:
    assert "error" not in answer, answer
    return answer["result"]
