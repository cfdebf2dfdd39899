"""The connections of one worker process: their ids, whose they are, how many there may be, and which have been left."""

import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio

from acp_integration.endpoint.exchange import Refusal
from acp_integration.endpoint.http_connection import HttpConnection
from acp_integration.options import EndpointOptions
from acp_integration.transports.transport import Transport

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = "acp.agent.transport.http.max-connections"
MAX_PER_PRINCIPAL: Final = "acp.agent.transport.http.max-connections-per-principal"
RETRY_LATER: Final = (("retry-after", "5"),)

_RANDOM_BYTES: Final = 16
_WORKER_BYTES: Final = 4
_PLACE_BYTES: Final = 2


class Runtime(Protocol):
    """What the endpoint needs of an agent on a connection."""

    @property
    def active_turns(self) -> int:
        """How many turns run."""
        ...

    @property
    def open_sessions(self) -> int:
        """How many sessions are open."""
        ...

    async def serve(self) -> None:
        """Serve until the peer is gone or `stop` was called."""
        ...

    def stop(self) -> None:
        """Cancel what runs, answer it, and end."""
        ...


@dataclass(eq=False, slots=True)
class Served:
    """One connection with the agent that serves it."""

    id: str
    principal: str | None
    transport: Transport
    runtime: Runtime
    initialized: bool = False
    posts: int = 0
    quiet_since: float = field(default_factory=anyio.current_time)
    unread_since: float | None = None

    def is_open_to(self, principal: str | None) -> bool:
        """Whether it answers to this principal: it belongs to one, and only once it is initialized."""
        return self.initialized and self.principal == principal


class Connections:
    """Every connection to one endpoint that lives in this process.

    Args:
        options: how many there may be.
        place: what the endpoint is called in every worker; only endpoints of one place share connections.
    """

    def __init__(self, options: EndpointOptions, place: str = "") -> None:
        self._place = hashlib.sha256(place.encode()).hexdigest()[: 2 * _PLACE_BYTES]
        self.worker = secrets.token_hex(_WORKER_BYTES) + self._place
        self._options = options
        self._served: dict[str, Served] = {}
        self._per_principal: Counter[str] = Counter()
        self._warned_of_strangers = False

    def __iter__(self) -> Iterator[Served]:
        return iter(tuple(self._served.values()))

    def __len__(self) -> int:
        return len(self._served)

    def new_id(self) -> str:
        """An id that nobody can guess, and that tells which worker holds the connection."""
        return f"{self.worker}.{secrets.token_hex(_RANDOM_BYTES)}"

    def check_room(self, principal: str | None) -> None:
        """See that one more connection is allowed.

        Raises:
            Refusal: with status 503 or, if it is the principal that has too many, 429; each names its setting.
        """
        options = self._options
        if len(self._served) >= options.max_connections:
            raise Refusal(
                503, f"Too many connections (limit {options.max_connections}, {MAX_CONNECTIONS})", RETRY_LATER
            )
        if principal is not None and self._per_principal[principal] >= options.max_connections_per_principal:
            limit = options.max_connections_per_principal
            raise Refusal(429, f"Too many connections of one user (limit {limit}, {MAX_PER_PRINCIPAL})", RETRY_LATER)

    def add(self, served: Served) -> None:
        """Count a connection."""
        self._served[served.id] = served
        if served.principal is not None:
            self._per_principal[served.principal] += 1

    def remove(self, served: Served) -> None:
        """Count a connection no more; safe to call twice."""
        if self._served.pop(served.id, None) is None or served.principal is None:
            return
        self._per_principal[served.principal] -= 1
        if not self._per_principal[served.principal]:
            del self._per_principal[served.principal]

    def find(self, identifier: str, principal: str | None) -> tuple[Served, HttpConnection]:
        """The HTTP connection with this id, if it belongs to the principal.

        Raises:
            Refusal: with status 404 if there is none; the text says so if another worker process made the id.
        """
        served = self._served.get(identifier)
        if served is not None and isinstance(served.transport, HttpConnection) and served.is_open_to(principal):
            return served, served.transport
        raise Refusal(404, self._explain_unknown(identifier))

    def other_owner(self, identifier: str) -> str | None:
        """The other worker whose endpoint of the same place made an id; None if it cannot have."""
        worker, _, rest = identifier.partition(".")
        made_like_ours = len(worker) == len(self.worker) and len(rest) == 2 * _RANDOM_BYTES and worker.isalnum()
        return worker if made_like_ours and worker != self.worker and worker.endswith(self._place) else None

    def _explain_unknown(self, identifier: str) -> str:
        worker = self.other_owner(identifier)
        if worker is None:
            return ""
        if not self._warned_of_strangers:
            self._warned_of_strangers = True
            logger.warning(
                "A request named a connection of worker %s but reached worker %s: run one worker, send each client "
                "to the same worker, or let the workers share connections (acp.agent.backplane.url)",
                ascii(worker),
                self.worker,
            )
        return "This connection belongs to another worker process, or to one that has ended"
