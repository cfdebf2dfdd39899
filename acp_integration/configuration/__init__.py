"""How settings are read: sources in order of precedence, one merge, and errors in the user's own spelling."""

from acp_integration.configuration.files import project_directory
from acp_integration.configuration.presence import anything_set

__all__ = ["anything_set", "project_directory"]
