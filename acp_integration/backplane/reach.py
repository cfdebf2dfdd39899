"""Whether the server between the workers can be used, and since when."""

import logging
from math import inf
from time import monotonic
from typing import Final
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

SETTLES_WITHIN: Final = 3.0
"""Seconds after its return in which every worker that lives has said so again."""


class Reach:
    """Whether Redis can be reached; every change is logged once.

    Args:
        place: where it is, for the log: the URL without who logs in there.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._away: bool | None = None
        self._away_since = -inf
        self._back_at = -inf

    def lost(self, error: Exception) -> None:
        """It could not be used."""
        if self._away:
            return
        if self._away is not None:
            self._away_since = monotonic()
        self._away = True
        logger.warning(
            "Redis cannot be used at %s (%s): connections of other hosts are out of reach, trying again",
            self._place,
            type(error).__name__,
        )

    def found(self) -> None:
        """It was used."""
        if self._away:
            self._back_at = monotonic()
            logger.warning("Redis can be used again")
        self._away = False

    @property
    def away_for(self) -> float:
        """Seconds that it has been away by now; it is away until it is found."""
        return 0.0 if self._away is False else monotonic() - self._away_since

    @property
    def settled(self) -> bool:
        """Whether a worker that is not seen is none: Redis has been there long enough for everybody to come back."""
        return self._away is False and monotonic() - self._back_at > SETTLES_WITHIN


def place_of(url: str) -> str:
    """An URL without who logs in there, and without what is said behind the path."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
