from acp_integration import acp_agent
from tests.store.remembering import CONFIG, Remembering


@acp_agent(name="remembering", version="1.0.0", modes=["ask", "code"], config_options=CONFIG)
class RememberingInDjango(Remembering):
    """The agent of the store's tests, in a Django project."""
