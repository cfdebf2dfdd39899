"""An application's say in who may open a session, on every transport."""

from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final

from acp_integration.context.invocation import Invocation
from acp_integration.errors import RequestError
from acp_integration.execution import HandlerExecutor
from acp_integration.interception import Interceptor
from acp_integration.jsonrpc import AUTH_REQUIRED, INVALID_REQUEST
from acp_integration.wire import methods

_OPENING: Final = {methods.SESSION_NEW, methods.SESSION_LOAD, methods.SESSION_RESUME, methods.SESSION_FORK}


class SessionGuard(Interceptor):
    """Asks a function of the application before a session is opened.

    Args:
        permits: called with the user, who is None when nobody is known, and the `Invocation`; sync or async.
            Only a true result opens the session.
        executor: where a sync function runs.
    """

    order = -100

    def __init__(self, permits: Callable[..., Any], executor: HandlerExecutor) -> None:
        self._permits = permits
        self._executor = executor

    async def pre_invoke(self, invocation: Invocation) -> bool:
        """Refuse a session that is not permitted, in the words of the protocol."""
        if invocation.method not in _OPENING or await self._permitted(invocation):
            return True
        if invocation.user is None:
            raise RequestError(AUTH_REQUIRED, "Authentication required")
        raise RequestError(INVALID_REQUEST, "Permission denied")

    async def _permitted(self, invocation: Invocation) -> bool:
        if iscoroutinefunction(self._permits):
            return bool(await self._permits(invocation.user, invocation))
        async with self._executor.scope():
            return bool(await self._executor.run(partial(self._permits, invocation.user, invocation)))
