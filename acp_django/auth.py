"""Who is calling: the project's users, by session, by bearer token, or by a class of the project's own."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth import get_user_model
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from acp_integration.caller import Caller

REQUEST_KEY: Final = "acp_django.request"
"""Where ``turn.http.scope`` holds the Django request that opened the connection, as the middleware left it."""

_SALT: Final = "acp_django.auth.BearerToken"


class Authentication(Protocol):
    """What the ``authentication`` list of ``settings.ACP`` names: one way to prove who is calling.

    Attributes:
        cookie: whether a browser sends the proof by itself, so that a foreign page could act for the user.
    """

    cookie: bool

    def authenticate(self, request: HttpRequest) -> Any:
        """The user, or None if the request carries no proof of this kind; may be async.

        Raises:
            PermissionDenied: the proof is there and wrong.
        """
        ...


class SessionAuthentication:
    """The user whom the project's own middleware found, usually by the session cookie."""

    cookie = True

    def authenticate(self, request: HttpRequest) -> Any:
        """``request.user``, loaded, so that async code may use it."""
        user = getattr(request, "user", None)
        return user if user is not None and user.is_authenticated else None


class BearerToken:
    """A signed token in the ``Authorization`` header; it needs no table, and ends with the user's password.

    Attributes:
        max_age: how long a token is good for, in seconds.
    """

    cookie = False
    max_age = 90 * 24 * 3600

    @classmethod
    def make(cls, user: Any) -> str:
        """A new token for a user."""
        return signing.dumps([str(user.pk), user.get_session_auth_hash()], salt=_SALT)

    def authenticate(self, request: HttpRequest) -> Any:
        """The active user whom the token names."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        user = self.user_of(token.strip())
        if user is None or not user.is_active:
            raise PermissionDenied("The bearer token is not valid")
        return user

    def user_of(self, token: str) -> Any:
        """The user a token belongs to, or None; override it to look tokens up elsewhere."""
        users = get_user_model()._default_manager  # noqa: SLF001  # Django's documented way to a swapped model's manager
        try:
            key, proof = signing.loads(token, salt=_SALT, max_age=self.max_age)
            user = users.get(pk=key)
        except (signing.BadSignature, TypeError, ValueError, users.model.DoesNotExist):
            return None
        return user if constant_time_compare(proof, user.get_session_auth_hash()) else None


def caller_for(user: Any) -> Caller:
    """For whom a connection is: it belongs to the primary key, as user objects are made anew for each request."""
    return Caller() if user is None else Caller(user, str(user.pk), guarded=True)


def user_named(name: str) -> Any:
    """The user of the project who has this name, or None."""
    users: Any = get_user_model()
    return users._default_manager.filter(**{users.USERNAME_FIELD: name}).first()  # noqa: SLF001  # documented


async def identify(request: HttpRequest, ways: Sequence[Authentication]) -> tuple[Any, bool]:
    """Ask each way in turn; the first that knows the user decides.

    Returns:
        the user, None for an anonymous request, and whether a browser sent the proof by itself.

    Raises:
        PermissionDenied: a proof is there and wrong.
    """
    for way in ways:
        user = await _authenticate(way, request)
        if user is not None:
            return user, getattr(way, "cookie", False)
    return None, False


async def _authenticate(way: Authentication, request: HttpRequest) -> Any:
    try:
        if iscoroutinefunction(way.authenticate):
            found = await way.authenticate(request)
        else:
            found = await sync_to_async(way.authenticate)(request)
    except Exception as error:
        if getattr(error, "status_code", None) in {401, 403}:  # as the classes of Django REST framework say it
            raise PermissionDenied(str(error)) from error
        raise
    return found[0] if isinstance(found, tuple) else found
