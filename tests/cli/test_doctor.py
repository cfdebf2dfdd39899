import json
import os
import sys

import pytest

PROBE = "examples.agents:ProbeAgent"


@pytest.fixture
def configured(repo_root):
    """The environment that configures a client, by the prefix of its variables."""

    def environ(prefix: str, *arguments: str) -> dict[str, str]:
        words = list(arguments or ("-m", "acp_integration", "stdio", PROBE, "--app-dir", str(repo_root)))
        start = f"{prefix}_TRANSPORT_STDIO"
        return {**os.environ, f"{start}_COMMAND": sys.executable, f"{start}_ARGS": json.dumps(words)}

    return environ


@pytest.mark.parametrize(("prefix", "words"), [("ACP_CLIENT", []), ("ACP_CLIENTS_HELPER", ["helper"])])
def test_a_healthy_agent_passes_every_step(prefix, words, command, configured):
    done = command("doctor", *words, "--json", env=configured(prefix))
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert [finding["step"] for finding in findings] == ["transport", "initialize", "session", "close"], done.stderr
    assert all(finding["ok"] for finding in findings)
    assert done.returncode == 0


def test_a_prompt_is_sent_on_request(command, configured):
    done = command("doctor", "--prompt", "hello", env=configured("ACP_CLIENT"))
    assert "ok   prompt" in done.stdout
    assert done.returncode == 0


def test_an_agent_that_dies_is_said_with_what_it_wrote(command, configured):
    done = command("doctor", env=configured("ACP_CLIENT", "-c", "raise SystemExit('out of coffee')"))
    assert "\nFAIL initialize" in done.stdout
    assert "out of coffee" in done.stdout
    assert done.returncode == 1


def test_no_configured_agent_says_what_to_set(command):
    done = command("doctor")
    assert "set one of acp.client.transport.stdio.command" in done.stdout
    assert done.returncode == 1


def test_clients_are_read_beside_the_named_folder_only(command, tmp_path):
    (tmp_path / "acp.toml").write_text('[clients.helper.transport.stdio]\ncommand = "no-such-agent"\n')
    here = command("doctor", "helper")
    assert "There is no client 'helper'" in here.stderr
    named = command("doctor", "helper", app_dir=tmp_path)
    assert named.returncode == 1
    assert "no-such-agent" in named.stdout
