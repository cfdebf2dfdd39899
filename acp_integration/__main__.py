"""`python -m acp_integration`: guards standard input and output before anything else is imported."""

import sys

from acp_integration.transports.guard import guard_standard_streams

streams = guard_standard_streams() if sys.argv[1:2] == ["stdio"] else None

from acp_integration.cli.core import CoreProgram  # noqa: E402  # the guard comes first
from acp_integration.cli.main import main  # noqa: E402  # the guard comes first

if __name__ == "__main__":
    sys.exit(main(CoreProgram(), sys.argv[1:], streams))
