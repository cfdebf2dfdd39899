"""One suite that judges every way of serving an agent, from the wire alone: it uses no client of this package."""

from acp_integration.testing.conformance.cells import Cell
from acp_integration.testing.conformance.peer import RawPeer
from acp_integration.testing.conformance.wire import Wire, WireRefused

__all__ = ["Cell", "RawPeer", "Wire", "WireRefused"]
