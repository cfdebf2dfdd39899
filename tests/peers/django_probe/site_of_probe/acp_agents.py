from acp_integration import acp_agent
from examples.agents import ProbeAgent


@acp_agent(name="probe", title="Probe", version="1.0.0")
class DjangoProbe(ProbeAgent):
    """A decorated subclass is the one agent of its module; the imported class is none."""
