"""The suite, over every way in which this package itself serves an agent."""

from acp_integration.testing.conformance.suite import *  # noqa: F403
from tests.conformance.cells import CELLS  # noqa: F401
