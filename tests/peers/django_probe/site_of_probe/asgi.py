import os

from django.core.asgi import get_asgi_application

from acp_django.asgi import acp_asgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_of_probe.settings")
application = acp_asgi(get_asgi_application())
