"""The application that tests start under each server; a variable says where its workers meet."""

import logging
import os

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import BackplaneOptions, EndpointOptions
from examples.agents import ProbeAgent

logging.basicConfig(level=logging.INFO)

workers = BackplaneOptions(url=os.environ.get("ACP_TEST_BACKPLANE"), key="the key of these tests")
app = EndpointApplication(AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(workers=workers)))
