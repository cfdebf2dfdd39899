"""What a test of an agent or of a client needs: both ends in memory, and doubles of either side."""

from acp_integration.testing.connecting import connect
from acp_integration.testing.mock_agent import NEVER, MockAgent
from acp_integration.testing.mock_client import MockClient

__all__ = ["NEVER", "MockAgent", "MockClient", "connect"]
