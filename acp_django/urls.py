"""Include these where the endpoint is to be; the path itself is `acp.agent.transport.http.path`."""

import re
from typing import Final

from django.urls import re_path

from acp_django import conf
from acp_django.views import acp_view
from acp_integration.errors import ConfigurationError
from acp_integration.options import EndpointOptions

app_name: Final = "acp_django"


def _endpoint_path() -> str:
    try:
        return conf.endpoint_options().path
    except ConfigurationError:  # the system checks and every start say what is wrong, each in its own way
        return EndpointOptions().path


_path: Final = re.escape(_endpoint_path().strip("/"))

urlpatterns: Final = [re_path(rf"^{_path}/?$", acp_view, name="endpoint")]
