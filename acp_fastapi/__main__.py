"""`python -m acp_fastapi`: guards standard input and output before the application is imported."""

import sys

from acp_integration.transports.guard import guard_standard_streams

streams = guard_standard_streams() if sys.argv[1:2] == ["stdio"] else None

from acp_fastapi.program import FastAPIProgram  # noqa: E402  # the guard comes first
from acp_integration.cli.main import main  # noqa: E402  # the guard comes first

if __name__ == "__main__":
    sys.exit(main(FastAPIProgram(), sys.argv[1:], streams))
