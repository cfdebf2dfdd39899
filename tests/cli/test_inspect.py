import json
import os

PROBE = "examples.agents:ProbeAgent"
AGENT = """
from acp_integration import acp_agent, on

@acp_agent(name="shop", version="2.0")
class Shop:
    @on.prompt(image=True)
    def answer(self, turn): ...

    @on.load_session
    async def load(self, session): ...
"""


def test_everything_is_one_json_object(command, tmp_path):
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "acp.toml").write_text("[agent]\nsync-threads = 7\n")
    environ = {**os.environ, "ACP_AGENT_REQUEST_TIMEOUT": "90s"}
    found = json.loads(command("inspect", "shop", "--json", app_dir=tmp_path, env=environ).stdout)
    assert found["agent"]["name"] == "shop"
    assert found["agent"]["class"] == "shop.Shop"
    kinds = {handler["method"]: handler["kind"] for handler in found["handlers"]}
    assert kinds["session/prompt"] == "sync"
    assert kinds["session/load"] == "async"
    assert found["initialize"]["agentCapabilities"]["loadSession"] is True
    assert found["initialize"]["agentCapabilities"]["promptCapabilities"]["image"] is True
    settings = found["settings"]
    assert settings["acp.agent.request-timeout"] == {
        "value": "90s",
        "origin": "environment (ACP_AGENT_REQUEST_TIMEOUT)",
    }
    assert settings["acp.agent.sync-threads"] == {"value": "7", "origin": str(tmp_path / "acp.toml")}
    assert settings["acp.agent.cancel-grace-period"] == {"value": "5s", "origin": "default"}
    assert found["threads"] == 7


def test_people_read_the_same(command):
    done = command("inspect", PROBE)
    assert done.stdout.startswith("agent     probe 1.0.0 (examples.agents.ProbeAgent)\n")
    assert "handler   session/prompt" in done.stdout
    assert "setting   acp.agent.cancel-grace-period = 5s  [default]" in done.stdout
    assert "threads   64 for sync handlers" in done.stdout


def test_secrets_are_masked(command):
    environ = {**os.environ, "ACP_AGENT_BACKPLANE_URL": "redis://localhost", "ACP_AGENT_BACKPLANE_KEY": "hush-hush"}
    done = command("inspect", PROBE, "--json", env=environ)
    assert done.returncode == 0, done.stderr
    assert "acp.agent.backplane.key" in done.stdout
    assert "hush-hush" not in done.stdout
