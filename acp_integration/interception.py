"""What stands around every handler call, the agent's own answers included."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from acp_integration import sdk
from acp_integration.context.invocation import Invocation
from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INTERNAL_ERROR

logger = logging.getLogger(__name__)

Step = Callable[[Invocation], Awaitable[Any]]
Answer = Callable[[Any, Invocation], Awaitable[bytes]]


class Interceptor:
    """Stands around handler calls; override what is needed, each as a plain or as an async method.

    Attributes:
        order: lower ones are outer; of equals the one given first is.
    """

    order: int = 0

    def pre_invoke(self, invocation: Invocation) -> Any:  # noqa: ARG002  # for those who override it
        """Called before the arguments are found; False vetoes the call. Raise a RequestError to choose the answer."""
        return True

    def post_invoke(self, invocation: Invocation, result: Any) -> Any:  # noqa: ARG002  # for those who override it
        """Called with what the handler returned; returns what counts in its place. An exception is only logged."""
        return result

    def on_error(self, invocation: Invocation, error: Exception) -> Any:  # noqa: ARG002  # for those who override it
        """Called with what the handler raised; a result but None is the answer, and so is a RequestError raised."""
        return None

    def after_completion(self, invocation: Invocation, error: Exception | None) -> Any:
        """Called last, exactly once, with what the call finally failed with. An exception is only logged."""


class Vetoed(RequestError):
    """The answer to a request that an interceptor vetoed, or whose handler gave none."""

    def __init__(self, method: str) -> None:
        reason = "it returned nothing, or an interceptor vetoed the call"
        super().__init__(INTERNAL_ERROR, f"The {method} handler produced no response ({reason})")


class Chain:
    """Interceptors in their order."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = sorted(interceptors, key=lambda interceptor: getattr(interceptor, "order", 0))

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    async def run(self, invocation: Invocation, invoke: Step, answer: Answer) -> bytes:
        """Call a handler inside the interceptors, and make its answer."""
        passed: list[Any] = []
        failure: Exception | None = None
        try:
            answered = await self._answered(invocation, invoke, answer, passed)
        except Exception as error:
            failure = error
            raise
        finally:
            for interceptor in reversed(passed):
                await _logged(interceptor.after_completion, invocation, failure)
        if answered is None and invocation.call.id is not None:
            raise Vetoed(invocation.method)
        return answered or b""

    async def _answered(self, invocation: Invocation, invoke: Step, answer: Answer, passed: list[Any]) -> bytes | None:
        try:
            for interceptor in self._interceptors:
                if not await _settled(interceptor.pre_invoke(invocation)):
                    return None
                passed.append(interceptor)
            value = await self._posted(invocation, await invoke(invocation), passed)
            return await answer(value, invocation)
        except Exception as error:  # noqa: BLE001  # every failure is offered to the interceptors
            return await answer(await _replacement(invocation, error, passed), invocation)

    async def _posted(self, invocation: Invocation, result: Any, passed: Sequence[Any]) -> Any:
        for interceptor in reversed(passed):
            try:
                replaced = await _settled(interceptor.post_invoke(invocation, result))
            except Exception:  # an interceptor's fault keeps no other from seeing the result
                logger.warning("An interceptor failed after the %s handler", invocation.method, exc_info=True)
                continue
            _check_replacement(invocation, result, replaced)
            result = replaced
        return result


async def _replacement(invocation: Invocation, error: Exception, passed: Sequence[Any]) -> Any:
    for interceptor in reversed(passed):
        try:
            replaced = await _settled(interceptor.on_error(invocation, error))
        except Exception as raised:
            if raised is not error:
                raised.__context__ = error
            raise
        if replaced is not None:
            return replaced
    raise error


def _check_replacement(invocation: Invocation, result: Any, replaced: Any) -> None:
    """A model in place of a model must be of the same kind; everything else is judged when the answer is made."""
    if sdk.is_model(result) and sdk.is_model(replaced) and type(result) is not type(replaced):
        names = f"{type(replaced).__name__}, not {type(result).__name__}"
        raise RequestError(INTERNAL_ERROR, f"An interceptor gave the {invocation.method} handler a {names}")


async def _logged(hook: Callable[..., Any], *arguments: Any) -> None:
    try:
        await _settled(hook(*arguments))
    except Exception:  # the answer stands already
        logger.warning("An interceptor failed after a call was completed", exc_info=True)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
