"""`python -m acp_django`: the path and the standard streams are seen to before the project's settings are imported."""

import sys

from acp_integration.entry import enter

if __name__ == "__main__":
    sys.exit(enter("acp_django.program", sys.argv[1:], {"django": "django", "asgiref": "django"}))
