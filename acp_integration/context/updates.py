"""The frames of updates, spliced from JSON that stands already: no model is built for what the context builds itself."""

from typing import Any, Final

from acp_integration.jsonrpc import encode

_OPEN: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
_UPDATE: Final = b',"update":'
_CLOSE: Final = b"}}"
_TEXT_CLOSE: Final = b'}}}}'


class UpdateFrames:
    """Builds the update frames of one session; the parts that never change are built once."""

    __slots__ = ("_head", "_message", "_thought", "_user")

    def __init__(self, session_id: str) -> None:
        self._head = _OPEN + encode(session_id) + _UPDATE
        self._message = self._chunk_head(b"agent_message_chunk")
        self._thought = self._chunk_head(b"agent_thought_chunk")
        self._user = self._chunk_head(b"user_message_chunk")

    def update(self, update: Any) -> bytes:
        """Any update, as a mapping or struct of its wire form."""
        return b"%b%b%b" % (self._head, encode(update), _CLOSE)

    def message(self, text: str) -> bytes:
        """A piece of the agent's message."""
        return b"%b%b%b" % (self._message, encode(text), _TEXT_CLOSE)

    def thought(self, text: str) -> bytes:
        """A piece of the agent's reasoning."""
        return b"%b%b%b" % (self._thought, encode(text), _TEXT_CLOSE)

    def user_message(self, text: str) -> bytes:
        """A piece of a user's message."""
        return b"%b%b%b" % (self._user, encode(text), _TEXT_CLOSE)

    def _chunk_head(self, kind: bytes) -> bytes:
        return self._head + b'{"sessionUpdate":"%b","content":{"type":"text","text":' % kind
