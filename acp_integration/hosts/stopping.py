"""How a host keeps its word about time: graceful within a bound; at once past it, on a failure, or interrupted."""

import logging
from collections.abc import Callable
from typing import Final

import anyio

from acp_integration.hosts.completion import Completion

logger = logging.getLogger(__name__)

_LATE: Final = "%s did not close within %g s: closing it now"
_FAILED: Final = "%s failed to close gracefully: closing it now"
_INTERRUPTED: Final = "Interrupted while %s closed: closing it now"


async def stop_within(timeout: float, graceful: Completion, close_now: Callable[[], None], what: str) -> None:
    """Wait for a graceful stop, and close at once if it fails, takes too long, or the caller is cancelled.

    Args:
        timeout: how long to wait, in seconds.
        graceful: the stop that is under way.
        close_now: closes at once, without waiting.
        what: the name for the log.
    """
    try:
        with anyio.fail_after(timeout):
            await graceful
    except TimeoutError:
        logger.warning(_LATE, what, timeout)
        close_now()
    except Exception:  # whatever failed: it is closed at once, and logged
        logger.warning(_FAILED, what, exc_info=True)
        close_now()
    except BaseException:
        logger.warning(_INTERRUPTED, what)
        close_now()
        raise


def stop_within_blocking(timeout: float, graceful: Completion, close_now: Callable[[], None], what: str) -> None:
    """The same for a thread; an interrupt is a ``KeyboardInterrupt``."""
    try:
        graceful.result(timeout)
    except TimeoutError:
        logger.warning(_LATE, what, timeout)
        close_now()
    except Exception:  # whatever failed: it is closed at once, and logged
        logger.warning(_FAILED, what, exc_info=True)
        close_now()
    except BaseException:
        logger.warning(_INTERRUPTED, what)
        close_now()
        raise
