import os

from acp_django.asgi import acp_asgi
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "probe_project.settings")
application = acp_asgi(get_asgi_application())
