"""Which browser pages may speak for a user: the rule of Django's own CSRF protection."""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.http import is_same_domain


def origin_is_ours(request: HttpRequest) -> bool:
    """Whether the Origin is the site itself or one of CSRF_TRUSTED_ORIGINS; a request without one is no page's."""
    origin = request.headers.get("Origin")
    if origin is None or origin == f"{request.scheme}://{request.get_host()}":
        return True
    return any(_trusts(trusted, origin) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def _trusts(trusted: str, origin: str) -> bool:
    if "*" not in trusted:
        return trusted == origin
    theirs, ours = urlsplit(origin), urlsplit(trusted)
    return theirs.scheme == ours.scheme and is_same_domain(theirs.netloc, ours.netloc.lstrip("*"))
