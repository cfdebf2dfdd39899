"""ASGI applications for the checks to look into."""

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

from acp_django.asgi import acp_asgi

plain = get_asgi_application()
inside_channels = ProtocolTypeRouter(
    {"http": plain, "websocket": URLRouter([re_path(r"^acp/?$", acp_asgi(get_asgi_application()))])}
)
around_channels = acp_asgi(ProtocolTypeRouter({"http": plain}))
