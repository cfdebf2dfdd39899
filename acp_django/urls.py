"""Include these where the endpoint is to be; the path itself is `acp.agent.transport.http.path`."""

import re
from typing import Final

from django.urls import re_path

from acp_django import conf
from acp_django.views import acp_view

app_name: Final = "acp_django"

_path: Final = re.escape(conf.endpoint_options().path.strip("/"))

urlpatterns: Final = [re_path(rf"^{_path}/?$", acp_view, name="endpoint")]
