"""`python -m acp_fastapi`: the path and the standard streams are seen to before the application is imported."""

import sys

from acp_integration.entry import enter

if __name__ == "__main__":
    sys.exit(enter("acp_fastapi.program", sys.argv[1:], {"fastapi": "fastapi", "starlette": "fastapi"}))
