"""What an agent answers without a handler of its own."""

from typing import Any

from acp_integration.binding import AnsweringHandler
from acp_integration.context.invocation import Invocation
from acp_integration.jsonrpc import encode
from acp_integration.returns import to_json


class EmptyAnswer(AnsweringHandler):
    """Succeeds: what the method changes is changed around it."""

    def __init__(self, method: str) -> None:
        super().__init__(method, f"the default {method}")

    async def invoke(self, invocation: Invocation) -> Any:  # noqa: ARG002  # the same for every call
        """Nothing is left to do."""
        return {}

    async def answer(self, value: Any, invocation: Invocation) -> bytes:  # noqa: ARG002  # the same for every call
        """An empty object, or what an interceptor put in its place."""
        return encode({}) if not value else to_json(value, self.method)
