"""The project serving the agent by which every way of serving is judged; it says nothing at import."""

import os

os.environ["PROBE_QUIET_SETTINGS"] = "1"

from probe_project.settings import *  # noqa: F403  # Django's way to vary settings

ACP = {"serve": "examples.agents.ProbeAgent"}
