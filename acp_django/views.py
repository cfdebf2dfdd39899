"""The view behind the endpoint's URL: it says for whom a request passes the gate, and serves where there is no gate."""

import logging
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from acp_django import conf
from acp_django.auth import REQUEST_KEY, caller_for, identify
from acp_django.fallback import serve_in_view
from acp_django.gate import GATE, Gate, Scope
from acp_integration.endpoint import CALLER_KEY
from acp_integration.endpoint.origin import ListedOrigins

logger = logging.getLogger(__name__)

_MARK: Final = "acp_django_view"
_NEEDS_ASGI: Final = (
    "An ACP agent is served over HTTP by an ASGI server, and this request came through WSGI: "
    "run the project's asgi.py under uvicorn, hypercorn, granian or daphne"
)


@csrf_exempt
@login_not_required
@non_atomic_requests
async def acp_view(request: HttpRequest) -> HttpResponseBase:
    """Let a request for the agent in, or not; it is served raw once Django has let go of it."""
    scope: Scope | None = getattr(request, "scope", None)
    if not conf.host_options().enabled:
        return _error(404, "Not found")
    if scope is None:
        return _error(501, _NEEDS_ASGI)
    request.get_host()  # raises for a host that is not in ALLOWED_HOSTS, whatever middleware there is
    try:
        user, by_cookie = await identify(request, conf.authentication())
    except PermissionDenied as denied:
        logger.info("Refused a caller: %s", denied)
        return _error(401, "Authentication required", {"WWW-Authenticate": "Bearer"})
    approved = _origin_is_ours(request)
    if by_cookie and not approved:
        return _error(403, "Origin not allowed")
    gate: Gate | None = scope.get(GATE)
    marks = {CALLER_KEY: caller_for(user), REQUEST_KEY: request}
    if gate is None:
        return await serve_in_view(request, _marked(scope, marks, without_origin=approved))
    gate.passed = _marked(gate.scope, marks, without_origin=approved)
    return HttpResponse()


setattr(acp_view, _MARK, True)


def is_acp_view(view: Callable[..., Any]) -> bool:
    """Whether a view is ours, also under decorators that keep the attributes of what they wrap."""
    return getattr(view, _MARK, False)


def _origin_is_ours(request: HttpRequest) -> bool:
    """The rule of Django's own CSRF protection; a request that names no origin comes from no page."""
    own = f"{request.scheme}://{request.get_host()}"
    return request.headers.get("Origin", own) in ListedOrigins([own, *settings.CSRF_TRUSTED_ORIGINS])


def _marked(scope: Scope, marks: dict[str, Any], *, without_origin: bool) -> Scope:
    """The scope for the endpoint; it does not judge again an origin that passed Django's rule."""
    headers = [header for header in scope["headers"] if not (without_origin and header[0].lower() == b"origin")]
    return {**scope, **marks, "headers": headers}


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> JsonResponse:
    return JsonResponse({"error": text}, status=status, headers=headers)
