"""`python -m acp_integration`: the path and the standard streams are seen to before anything else is imported."""

import sys

from acp_integration.entry import enter

if __name__ == "__main__":
    sys.exit(enter("acp_integration.cli.core", sys.argv[1:]))
