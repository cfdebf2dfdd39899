"""Our agent as an ASGI application, with room for a thousand connections of one caller."""

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import EndpointOptions
from benchmarks.agents.ours import EchoAgent

CONNECTIONS = 1001

options = EndpointOptions(max_connections=CONNECTIONS, max_connections_per_principal=CONNECTIONS)
app = EndpointApplication(AcpEndpoint(AgentBuilder(EchoAgent).build_factory(), options))
