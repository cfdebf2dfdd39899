"""Which backplane the settings ask for."""

import logging
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

from acp_integration.backplane.group import join, own_group
from acp_integration.backplane.protocol import Backplane
from acp_integration.backplane.reach import place_of
from acp_integration.backplane.unix import UnixBackplane, check_sockets
from acp_integration.errors import ConfigurationError
from acp_integration.options import BackplaneOptions

logger = logging.getLogger(__name__)

URL: Final = "acp.agent.backplane.url"
KEY: Final = "acp.agent.backplane.key"

_REDIS: Final = frozenset({"redis", "rediss", "valkey", "valkeys"})

Opener = Callable[[], Backplane | None]
"""Makes the backplane of a worker that starts; None if it stands alone."""


def backplane_opener(options: BackplaneOptions, max_message_size: int) -> Opener:
    """What makes the backplane that the settings ask for, once the worker runs.

    Args:
        options: the settings.
        max_message_size: the largest message that crosses, in bytes.

    Raises:
        ConfigurationError: if the URL means nothing, or misses its key or its extra.
    """
    if options.url is None:
        return lambda: _automatic(max_message_size)
    scheme, separator, rest = options.url.partition(":")
    if separator and scheme == "memory" and not rest:
        return lambda: None
    if separator and scheme == "unix" and sys.platform != "win32":
        return lambda: _unix(rest.removeprefix("//"), max_message_size)
    if separator and scheme in _REDIS:
        return _redis(options.url, options.key, max_message_size)
    raise ConfigurationError(
        f"{URL} must be memory:, unix:, unix:/a/directory or redis://host:port/0 (or rediss:, valkey:, valkeys:), "
        f"or unset, not {place_of(options.url)!r}"
    )


def _automatic(max_message_size: int) -> Backplane | None:
    if sys.platform == "win32":
        return None
    try:
        group = own_group()
        if group is not None:
            check_sockets(group.directory)
    except (OSError, ConfigurationError) as error:
        logger.warning("Workers share no connections, each request must reach the worker of its connection: %s", error)
        return None
    return None if group is None else UnixBackplane(group, max_message_size)


def _unix(directory: str, max_message_size: int) -> Backplane:
    group = join(Path(directory)) if directory else own_group()
    if group is None:
        raise ConfigurationError(
            f"{URL} is unix: but no server made this process to be one of its workers: "
            "name a directory where the workers meet (unix:/a/directory)"
        )
    return UnixBackplane(group, max_message_size)


def _redis(url: str, key: str | None, max_message_size: int) -> Opener:
    if not key:
        raise ConfigurationError(
            f"{KEY} is missing: hosts that share connections over {URL} prove themselves by it. Give all of them the "
            "same long text, as ACP_AGENT_BACKPLANE_KEY: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    opened = import_module("acp_integration.backplane.redis")
    make: Callable[[str, str, int], Backplane] = opened.RedisBackplane
    make(url, key, max_message_size)  # says what is wrong with the URL
    return lambda: make(url, key, max_message_size)
