"""FastAPI's dependencies for the handlers of an agent, on every transport alike.

A private FastAPI application is the resolver: each handler with dependencies is a path operation of it, called with the
request that opened the connection. The path operation waits while the handler runs, so that `yield` dependencies are
closed behind it, and see how it ended.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from fastapi import BackgroundTasks, Depends, FastAPI, Request, Response, UploadFile, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import SecurityScopes
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Scope

from acp_fastapi.refusals import as_request_error
from acp_integration.caller import LOCAL, Caller
from acp_integration.endpoint.gate import no_body
from acp_integration.errors import HandlerError
from acp_integration.lending import Loan, Proceed, held
from acp_integration.turns import Call

T = TypeVar("T")

_MARKERS: Final = (params.Depends, params.Param, params.Body)
_CLASSES: Final = (HTTPConnection, Response, BackgroundTasks, SecurityScopes, UploadFile)
_NO_REQUEST: Final = {"path": "/", "query_string": b"", "headers": []}
_SOUGHT: Final = "acp_fastapi.sought"
_LOAN: Final = "acp_loan"


@dataclass(frozen=True)
class _Sought:
    """What one pass through the private application is for."""

    route: BaseRoute
    loan: Loan[Any]


class Resolver:
    """Finds the values of handler parameters that FastAPI knows how to find.

    Args:
        served: the user's application: what dependencies see as `request.app`, and whose overrides count.
        state: what its lifespan yielded, for connections that no request opened.
    """

    def __init__(self, served: FastAPI, state: Mapping[str, Any]) -> None:
        self._served = served
        self._state = state
        self._app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        for refusal in (HTTPException, RequestValidationError):
            self._app.add_exception_handler(refusal, _keep_refusal)
        # Called in place of the application itself, which would put itself in the place of `request.app`.
        self._resolve = self._app.build_middleware_stack()

    def claims(self, parameter: Parameter) -> bool:
        """Whether FastAPI, and not the protocol, says what a parameter is."""
        annotation, marks = parameter.annotation, [parameter.default]
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            marks += more
        return any(isinstance(mark, _MARKERS) for mark in marks) or _is_special(annotation)

    def prepare(
        self, handler: Callable[..., Any], parameters: Sequence[Parameter]
    ) -> Callable[[Call, Proceed[T]], Awaitable[T]]:
        """What runs a handler with the values of its parameters, and closes what they opened behind it.

        Raises:
            HandlerError: if FastAPI cannot supply a parameter, or would read it from a request body.
        """
        route = self._route_for(handler, parameters)
        return lambda call, proceed: self._run(route, call.peer.caller, proceed)

    @asynccontextmanager
    async def constructed(self, factory: Callable[..., T], parameters: Sequence[Parameter]) -> AsyncIterator[T]:
        """Call a factory with its dependencies, which stay open as long as the block runs."""
        route = self._route_for(factory, parameters)
        async with held(lambda proceed: self._run(route, LOCAL, proceed)) as values:
            yield factory(**values)

    async def _run(self, route: BaseRoute, caller: Caller, proceed: Proceed[T]) -> T:
        self._app.dependency_overrides = self._served.dependency_overrides
        loan = Loan(proceed)
        scope = self._scope(caller, _Sought(route, loan))
        try:
            return await loan.run(lambda: self._resolve(scope, no_body(), _drop))
        except (HTTPException, RequestValidationError) as refusal:
            raise as_request_error(refusal) from refusal

    def _scope(self, caller: Caller, sought: _Sought) -> Scope:
        opened: Mapping[str, Any] = caller.http.scope if caller.http else _NO_REQUEST
        kept = {name: value for name, value in opened.items() if not name.startswith("fastapi")}
        state = dict(opened.get("state", self._state))
        return {**kept, "type": "http", "method": "POST", "app": self._served, "state": state, _SOUGHT: sought}

    def _route_for(self, handler: Callable[..., Any], parameters: Sequence[Parameter]) -> APIRoute:
        for parameter in parameters:
            self._check(handler, parameter)
        route = self._route(parameters)
        self._app.router.routes.append(route)
        return route

    def _check(self, handler: Callable[..., Any], parameter: Parameter) -> None:
        try:
            body = self._route([parameter]).body_field
        except Exception as error:
            problem = f"FastAPI cannot supply the parameter {parameter.name!r}: {error}"
            raise _blame(handler, parameter, problem) from error
        if body is not None:
            field = "" if body.name == parameter.name else f" ({body.name!r})"
            problem = f"FastAPI would read the parameter {parameter.name!r}{field} from a request body"
            raise _blame(handler, parameter, f"{problem}, and a handler has none: use a dependency that needs no body")

    def _route(self, parameters: Sequence[Parameter]) -> APIRoute:
        async def operation(**values: Any) -> Response:
            await values.pop(_LOAN).lend(values)
            return Response(status_code=204)

        own = Parameter(_LOAN, Parameter.KEYWORD_ONLY, annotation=Annotated[Any, Depends(_loan_of)])
        declared = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        operation.__signature__ = Signature([own, *declared])  # type: ignore[attr-defined]
        return _HandlerRoute("/", operation, methods=["POST"], dependency_overrides_provider=self._app)


class _HandlerRoute(APIRoute):
    """A path operation that is asked for by itself, whatever the path of the request is."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope[_SOUGHT].route is not self:
            return Match.NONE, {}
        return Match.FULL, {"route": self, "endpoint": self.endpoint, "path_params": scope.get("path_params", {})}


async def _loan_of(request: Request) -> Any:
    return request.scope[_SOUGHT].loan


async def _keep_refusal(request: Request, error: Exception) -> Response:
    request.scope[_SOUGHT].loan.refused = error
    return Response(status_code=204)


async def _drop(message: Message) -> None:
    """Nobody reads the response of a path operation that only resolves."""


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
