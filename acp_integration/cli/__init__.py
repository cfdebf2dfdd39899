"""The command line that the core and both frameworks share."""

from acp_integration.cli.main import main

__all__ = ["main"]
