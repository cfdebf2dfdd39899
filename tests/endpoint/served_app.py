"""The application that the tests of shutdown start under each server."""

import logging

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import EndpointOptions
from examples.agents import ProbeAgent

logging.basicConfig(level=logging.INFO)

app = EndpointApplication(AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions()))
