"""What the headers of a request say about media types, and from where a stream goes on."""

from collections.abc import Mapping
from typing import Final

from acp_integration.endpoint.exchange import Refusal
from acp_integration.endpoint.routing import MAX_ID_LENGTH

CONNECTION_HEADER: Final = "acp-connection-id"
SESSION_HEADER: Final = "acp-session-id"

_STREAM_RANGES: Final = frozenset({"text/event-stream", "text/*", "*/*"})


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is JSON that is not compressed; parameters of the media type are ignored."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = headers.get("content-encoding", "identity").strip().lower()
    return media_type == "application/json" and encoding == "identity"


def accepts_event_stream(accept: str | None) -> bool:
    """Whether the peer reads an event stream; without the header it takes anything."""
    return accept is None or any(_allows_stream(item) for item in accept.split(","))


def _allows_stream(media_range: str) -> bool:
    name, *parameters = (part.strip().lower() for part in media_range.split(";"))
    return name in _STREAM_RANGES and not any(_is_zero_quality(parameter) for parameter in parameters)


def _is_zero_quality(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", "0.", ".")


def event_id(value: str | None) -> int | None:
    """The event after which a stream goes on; what cannot be one of our ids means from where the last reader left."""
    return int(value) if value is not None and value.isascii() and value.isdecimal() and len(value) < 20 else None


def usable_id(value: str | None, name: str) -> str | None:
    """An id from a header as it is, None if there is none.

    Raises:
        Refusal: with status 400 if it is too long.
    """
    if value is not None and len(value) > MAX_ID_LENGTH:
        raise Refusal(400, f"{name} is longer than {MAX_ID_LENGTH} characters")
    return value
