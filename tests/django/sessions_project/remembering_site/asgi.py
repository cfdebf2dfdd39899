from django.core.asgi import get_asgi_application

from acp_django.asgi import acp_asgi

application = acp_asgi(get_asgi_application())
