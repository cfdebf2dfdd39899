"""Middleware that gets in the way, in the ways projects have."""

from django.http import HttpResponseForbidden, HttpResponseRedirect

seen: list[str] = []


def log_in_first(get_response):
    return lambda request: HttpResponseRedirect(f"/login/?next={request.path}")


def forbid(get_response):
    return lambda request: HttpResponseForbidden("<h1>No</h1>")


def fail(get_response):
    def middleware(request):
        raise ValueError("broken on purpose")

    return middleware


def count(get_response):
    def middleware(request):
        seen.append(request.method)
        return get_response(request)

    return middleware
