"""FastAPI's dependencies for the handlers of an agent, on every transport alike.

A private FastAPI application is the resolver: each handler with dependencies is a path operation of it, called with the
request that opened the connection. The path operation waits while the handler runs, so that `yield` dependencies are
closed behind it, and see how it ended.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import Parameter, Signature
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import anyio
from fastapi import BackgroundTasks, Depends, FastAPI, Request, Response, UploadFile, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import SecurityScopes
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_fastapi.resolution import RESOLUTION, Proceed, Resolution
from acp_integration.caller import LOCAL, Caller
from acp_integration.errors import HandlerError

T = TypeVar("T")
Run = Callable[[Caller, Proceed[T]], Awaitable[T]]

_MARKERS: Final = (params.Depends, params.Param, params.Body)
_CLASSES: Final = (HTTPConnection, Response, BackgroundTasks, SecurityScopes, UploadFile)
_NO_REQUEST: Final = {"path": "/", "query_string": b"", "headers": []}
_OWN: Final = "acp_resolution"


class Resolver:
    """Finds the values of handler parameters that FastAPI knows how to find.

    Args:
        served: the user's application: what dependencies see as `request.app`, and whose overrides count.
        state: what its lifespan yielded, for connections that no request opened.
    """

    def __init__(self, served: FastAPI, state: Mapping[str, Any]) -> None:
        self._served = served
        self._state = state
        self._app = FastAPI(
            openapi_url=None, docs_url=None, redoc_url=None, middleware=[Middleware(_SeenAs, served=served)]
        )
        self._app.router.route_class = _HandlerRoute
        for refusal in (HTTPException, RequestValidationError):
            self._app.add_exception_handler(refusal, _keep_refusal)

    def claims(self, parameter: Parameter) -> bool:
        """Whether FastAPI, and not the protocol, says what a parameter is."""
        marks = (parameter.default, *get_args(parameter.annotation)[1:])
        if isinstance(marks[0], _MARKERS):
            return True
        if get_origin(parameter.annotation) is Annotated:
            return any(isinstance(mark, _MARKERS) for mark in marks[1:]) or _is_special(
                get_args(parameter.annotation)[0]
            )
        return _is_special(parameter.annotation)

    def prepare(self, handler: Callable[..., Any], parameters: Sequence[Parameter]) -> Run[Any]:
        """What runs a handler with the values of its parameters, and closes what they opened behind it.

        Raises:
            HandlerError: if FastAPI cannot supply a parameter, or would read it from a request body.
        """
        for parameter in parameters:
            self._check(handler, parameter)
        route = self._route(parameters)
        self._app.router.routes.append(route)

        async def run(caller: Caller, proceed: Proceed[T]) -> T:
            self._app.dependency_overrides = self._served.dependency_overrides
            resolution = Resolution(route, proceed)
            return await resolution.run(self._app, self._scope(caller, resolution))

        return run

    @asynccontextmanager
    async def constructed(self, factory: Callable[..., T], parameters: Sequence[Parameter]) -> AsyncIterator[T]:
        """Call a factory with its dependencies, which stay open as long as the block runs."""
        run = self.prepare(factory, parameters)
        done = anyio.Event()

        async def hold(*, task_status: anyio.abc.TaskStatus[T]) -> None:
            async def proceed(values: Mapping[str, Any]) -> None:
                task_status.started(factory(**values))
                await done.wait()

            await run(LOCAL, proceed)

        try:
            async with anyio.create_task_group() as tasks:
                yield await tasks.start(hold)
                done.set()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # whoever starts the app reads the error itself

    def _check(self, handler: Callable[..., Any], parameter: Parameter) -> None:
        try:
            body = self._route([parameter]).body_field
        except Exception as error:
            raise _blame(
                handler, parameter, f"FastAPI cannot supply the parameter {parameter.name!r}: {error}"
            ) from error
        if body is not None:
            field = "" if body.name == parameter.name else f" ({body.name!r})"
            problem = f"FastAPI would read the parameter {parameter.name!r}{field} from a request body"
            raise _blame(handler, parameter, f"{problem}, and a handler has none: use a dependency that needs no body")

    def _route(self, parameters: Sequence[Parameter]) -> "_HandlerRoute":
        async def operation(**values: Any) -> Response:
            await values.pop(_OWN).lend(values)
            return Response(status_code=204)

        own = Parameter(_OWN, Parameter.KEYWORD_ONLY, annotation=Annotated[Any, Depends(_resolution_of)])
        declared = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        operation.__signature__ = Signature([own, *declared])  # type: ignore[attr-defined]
        return _HandlerRoute(
            "/", operation, methods=["POST"], response_model=None, dependency_overrides_provider=self._app
        )

    def _scope(self, caller: Caller, resolution: Resolution[Any]) -> Scope:
        opened: Mapping[str, Any] = caller.http.scope if caller.http else _NO_REQUEST
        kept = {name: value for name, value in opened.items() if not name.startswith("fastapi")}
        state = dict(opened.get("state", self._state))
        return {**kept, "type": "http", "method": "POST", "state": state, RESOLUTION: resolution}


class _HandlerRoute(APIRoute):
    """A path operation that is asked for by itself, whatever the path of the request is."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope[RESOLUTION].route is not self:
            return Match.NONE, {}
        return Match.FULL, {"route": self, "endpoint": self.endpoint, "path_params": scope.get("path_params", {})}


class _SeenAs:
    """Shows dependencies the user's application in place of the private one."""

    def __init__(self, app: ASGIApp, served: FastAPI) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self._served
        await self._app(scope, receive, send)


async def _resolution_of(request: Request) -> Any:
    return request.scope[RESOLUTION]


async def _keep_refusal(request: Request, error: Exception) -> Response:
    request.scope[RESOLUTION].refused = error
    return Response(status_code=204)


def _is_special(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, UnionType):
        return any(_is_special(choice) for choice in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, _CLASSES)


def _blame(handler: Callable[..., Any], parameter: Parameter, problem: str) -> HandlerError:
    return HandlerError(
        f"{handler.__qualname__}: {problem}",
        owner=handler.__qualname__.rpartition(".")[0],
        method=handler.__name__,
        parameter=parameter.name,
    )
