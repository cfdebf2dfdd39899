import logging
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from acp_integration import AcpAgentSettings, AcpClientSettings
from acp_integration.configuration import anything_set, project_directory
from acp_integration.errors import ConfigurationError, UnknownKey

KUBERNETES = {
    "ACP_AGENT_PORT": "tcp://10.0.0.1:80",
    "ACP_AGENT_SERVICE_HOST": "10.0.0.1",
    "ACP_AGENT_SERVICE_PORT": "80",
    "ACP_AGENT_PORT_80_TCP": "tcp://10.0.0.1:80",
    "ACP_AGENT_PORT_80_TCP_PROTO": "tcp",
}
SECONDS = timedelta(seconds=1)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def agent(mapping=None, **sources):
    return AcpAgentSettings.load(mapping, **{"environ": {}, **sources})


def lines(reads):
    with pytest.raises(ConfigurationError) as raised:
        reads()
    return raised.value.problems


def test_the_first_source_that_sets_a_key_wins(tmp_path):
    own = write(tmp_path / "acp.toml", '[agent]\nrequest-timeout = "5s"\nsync-threads = 5')
    project = write(tmp_path / "pyproject.toml", '[tool.acp.agent]\nrequest-timeout = "6s"\nabort-timeout = "6s"')
    dotenv = write(tmp_path / ".env", "ACP_AGENT_REQUEST_TIMEOUT=3s\nACP_AGENT_DRAIN_TIMEOUT=3s")
    sources = {
        "arguments": {"request_timeout": "1s"},
        "environ": {"ACP_AGENT_REQUEST_TIMEOUT": "2s", "ACP_AGENT_CANCEL_GRACE_PERIOD": "2s"},
        "mapping": {
            "acp.agent.request-timeout": "4s",
            "acp.agent.drain-timeout": "4s",
            "acp.agent.max-prompt-duration": 4000,
        },
        "files": [own, project, dotenv],
    }
    found = agent(**sources)
    assert found == AcpAgentSettings(
        request_timeout=1 * SECONDS,
        cancel_grace_period=2 * SECONDS,
        drain_timeout=3 * SECONDS,
        max_prompt_duration=4 * SECONDS,
        sync_threads=5,
        abort_timeout=6 * SECONDS,
    )
    for number, name in enumerate(["arguments", "environ", "dotenv", "mapping", "own"], start=2):
        if name == "dotenv":
            sources["files"] = [own, project]
        elif name == "own":
            sources["files"] = [project]
        else:
            sources[name] = {}
        assert agent(**sources).request_timeout == number * SECONDS


def test_a_blank_value_leaves_the_key_to_the_next_source():
    found = agent({"acp.agent.request-timeout": "4s"}, environ={"ACP_AGENT_REQUEST_TIMEOUT": " "})
    assert found.request_timeout == 4 * SECONDS


def test_a_bad_value_that_another_source_overrides_is_no_error():
    assert agent({"acp.agent.sync-threads": "x"}, environ={"ACP_AGENT_SYNC_THREADS": "2"}).sync_threads == 2


def test_the_environment_of_the_process_is_read_unless_another_is_given(monkeypatch):
    monkeypatch.setenv("ACP_AGENT_SYNC_THREADS", "3")
    assert AcpAgentSettings.load().sync_threads == 3
    assert AcpAgentSettings.load(environ={}).sync_threads is None


def test_one_mapping_is_read_alone(monkeypatch):
    monkeypatch.setenv("ACP_AGENT_SYNC_THREADS", "3")
    assert AcpAgentSettings.from_mapping({}).sync_threads is None


@pytest.mark.parametrize(
    "mapping",
    [
        {"acp.agent.transport.http.max-post-body-size": "1K"},
        {"acp": {"agent": {"transport": {"http": {"max_post_body_size": "1K"}}}}},
        {"ACP": {"AGENT": {"TRANSPORT": {"HTTP": {"MAX_POST_BODY_SIZE": 1024}}}}},
        {"acp.agent": {"transport.http": {"Max-Post_Body-SIZE": "1K"}}},
    ],
)
def test_nested_dotted_kebab_snake_and_upper_case_are_the_same_key(mapping):
    assert agent(mapping).transport.http.max_post_body_size == 1024


def test_the_entries_of_a_table_come_from_every_source():
    found = AcpClientSettings.load(
        {"acp.client.transport.stdio.env": {"A": "mapping", "B": "mapping"}},
        environ={"ACP_CLIENT_TRANSPORT_STDIO_ENV": '{"A": "environment", "C": "environment"}'},
    )
    assert found.transport.stdio.env == {"A": "environment", "B": "mapping", "C": "environment"}


@pytest.mark.parametrize("spelled", ["a, b,,c", '["a", "b", "c"]', ["a", "b", "c"], ("a", "b", "c")])
def test_a_list_takes_commas_json_or_a_list(spelled):
    assert agent({"acp.agent.plugins": spelled}).plugins == ("a", "b", "c")


def test_a_json_list_keeps_commas_and_spaces():
    found = AcpClientSettings.load(environ={"ACP_CLIENT_TRANSPORT_STDIO_ARGS": '["a,b", " c "]'})
    assert found.transport.stdio.args == ("a,b", " c ")


def test_foreign_keys_are_ignored(tmp_path, caplog):
    mapping = {"acp.client.request-timeout": "x", "other.agent.enabled": "x", "acpx": {"agent": 1}, "debug": True}
    environ = {"ACP_FOO": "1", "ACP_HOME": "/", "ACPX_AGENT_ENABLED": "x", "PATH": "/bin", "ACP_AGENTS": "x"}
    file = write(tmp_path / "pyproject.toml", '[tool.other]\nacp = 1\n[project]\nname = "x"')
    assert agent(mapping, environ=environ, files=[file]) == AcpAgentSettings()
    assert not caplog.records


def test_an_unknown_key_is_an_error_with_the_nearest_known_one():
    with pytest.raises(UnknownKey) as raised:
        agent({"acp": {"agent": {"request_timeuot": "1s", "http.path": "/x"}}})
    assert raised.value.problems == (
        "acp.agent.request_timeuot is not a known key; did you mean acp.agent.request-timeout?",
        "acp.agent.http.path is not a known key; did you mean acp.agent.transport.http.path?",
    )
    assert raised.value.keys == ("acp.agent.request_timeuot", "acp.agent.http.path")


@pytest.mark.parametrize("prefix", ["acp.agent", "spring.ai.acp.agent", "quarkus.acp"])
def test_an_unknown_key_is_named_under_every_prefix(prefix):
    with pytest.raises(UnknownKey) as raised:
        AcpAgentSettings.from_mapping({f"{prefix}.sync-thread": "1"}, prefix)
    assert str(raised.value) == f"{prefix}.sync-thread is not a known key; did you mean {prefix}.sync-threads?"


def test_an_unknown_section_beside_ours_is_an_error():
    with pytest.raises(UnknownKey) as raised:
        agent({"ACP": {"agnet": {"enabled": True}}})
    assert str(raised.value) == "ACP.agnet.enabled is not a known key; did you mean ACP.agent.enabled?"


def test_an_unknown_key_of_arguments_is_named_without_a_prefix():
    assert lines(lambda: agent(arguments={"sync-thread": 1})) == (
        "sync-thread is not a known key; did you mean sync-threads?",
    )


def test_an_unknown_key_beside_a_bad_value_is_a_plain_configuration_error():
    with pytest.raises(ConfigurationError) as raised:
        agent({"acp.agent.sync-thread": 1, "acp.agent.enabled": "maybe"})
    assert type(raised.value) is ConfigurationError


def test_unknown_variables_are_one_warning(caplog):
    environ = {**KUBERNETES, "ACP_AGENT_REQUEST_TIMEUOT": "1s", "ACP_AGENT_SYNC_THREADS": "2"}
    assert agent(environ=environ).sync_threads == 2
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "ACP_AGENT_REQUEST_TIMEUOT (did you mean ACP_AGENT_REQUEST_TIMEOUT?)" in record.getMessage()
    assert all(name in record.getMessage() for name in KUBERNETES)
    assert "10.0.0.1" not in record.getMessage()


def test_unknown_variables_of_named_clients_are_one_warning(caplog):
    environ = {"ACP_CLIENTS_PORT": "tcp://10.0.0.1:80", "ACP_CLIENTS_SERVICE_HOST": "10.0.0.1"}
    assert AcpClientSettings.load_named(environ=environ) == {}
    assert len(caplog.records) == 1


def test_bad_keys_of_all_sources_are_one_error_each_as_it_was_written(tmp_path):
    own = write(tmp_path / "acp.toml", '[agent]\nabort_timeout = "x"')
    dotenv = write(tmp_path / "local.env", "ACP_AGENT_DRAIN_TIMEOUT=x")
    found = lines(
        lambda: agent(
            {"acp": {"agent": {"MAX_PROMPT_DURATION": "x"}}},
            environ={"ACP_AGENT_REQUEST_TIMEOUT": "soon"},
            files=[dotenv, own],
            arguments={"sync_threads": "x"},
        )
    )
    duration = "is not a duration such as 30s or PT30S"
    assert found == (
        f"ACP_AGENT_REQUEST_TIMEOUT=soon {duration}",
        f"acp.agent.MAX_PROMPT_DURATION=x {duration}",
        "sync_threads=x is not an integer",
        f"ACP_AGENT_DRAIN_TIMEOUT=x {duration} (in {dotenv})",
        f"acp.agent.abort_timeout=x {duration} (in {own})",
    )


def test_secrets_stand_in_no_error():
    found = lines(
        lambda: AcpClientSettings.load(
            {"acp.client.transport.http.headers.Authorization": ["hush"]},
            environ={
                "ACP_CLIENT_TRANSPORT_STDIO_ENV": "TOKEN=hush",
                "ACP_CLIENT_TRANSPORT_WEBSOCKET_URI": "http://me:hush@h/",
            },
        )
    )
    assert found == (
        "ACP_CLIENT_TRANSPORT_STDIO_ENV=********** is not a JSON object",
        "ACP_CLIENT_TRANSPORT_WEBSOCKET_URI=http://**********@h/ is not a ws:// or wss:// URI",
        "acp.client.transport.http.headers.Authorization=********** is not text",
    )


def test_the_key_of_the_backplane_stands_in_no_error():
    assert lines(lambda: agent({"acp.agent.backplane.key": 5150})) == (
        "acp.agent.backplane.key=********** is not text",
    )


def test_an_empty_prefix_reads_no_variable():
    assert AcpAgentSettings.load(prefix="", environ={"ENABLED": "x", "_ENABLED": "x"}) == AcpAgentSettings()


def test_the_prefix_names_the_variables():
    found = AcpAgentSettings.load(prefix="my-app.agent", environ={"MY_APP_AGENT_SYNC_THREADS": "2"})
    assert found.sync_threads == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("acp.toml", "[agent.transport.http]\npath = '/x'"),
        ("acp.toml", "[acp.agent.transport.http]\npath = '/x'"),
        ("acp.toml", "agent.transport.http.path = '/x'"),
        ("pyproject.toml", "[tool.acp.agent]\ntransport.http.path = '/x'"),
        ("pyproject.toml", "[tool.acp]\n'agent.transport.http' = {path = '/x'}"),
    ],
)
def test_a_project_directory_stands_for_what_is_ours_in_it(tmp_path, name, text):
    write(tmp_path / name, text)
    assert agent(files=tmp_path).transport.http.path == "/x"


def test_a_project_directory_without_files_sets_nothing(tmp_path):
    write(tmp_path / ".env", "ACP_AGENT_SYNC_THREADS=2")
    assert agent(files=tmp_path) == AcpAgentSettings()


def test_the_working_directory_is_never_looked_at(tmp_path, monkeypatch):
    write(tmp_path / "acp.toml", "[agent]\nsync-threads = 2")
    write(tmp_path / "pyproject.toml", "[tool.acp.agent]\nsync-threads = 2")
    write(tmp_path / ".env", "ACP_AGENT_SYNC_THREADS=2")
    monkeypatch.chdir(tmp_path)
    assert agent() == AcpAgentSettings()


def test_a_dotenv_file_pulls_in_no_other_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hush")
    file = write(tmp_path / ".env", 'ACP_AGENT_BACKPLANE_URL="redis://${SECRET}"\nDATABASE_URL=x')
    assert agent(files=file).backplane.url == "redis://${SECRET}"


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path):
    assert lines(lambda: agent(files=[tmp_path / "acp.toml"])) == (f"{tmp_path / 'acp.toml'} does not exist",)


@pytest.mark.parametrize("content", [b"[agent", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_an_error(tmp_path, content):
    (tmp_path / "acp.toml").write_bytes(content)
    (line,) = lines(lambda: agent(files=tmp_path))
    assert line.startswith(f"{tmp_path / 'acp.toml'} cannot be read as TOML: ")


def test_a_project_file_without_our_name_is_not_read_at_all(tmp_path):
    write(tmp_path / "pyproject.toml", '[project]\nname = "acp_agents"\nthis is no TOML')
    assert agent(files=tmp_path) == AcpAgentSettings()


@pytest.mark.parametrize("table", ["[tool.acp.agent]", "[ tool . 'acp' . agent ]", '[tool."\\u0061cp".agent]'])
def test_a_project_file_with_our_name_is_read_however_it_is_spelled(tmp_path, table):
    write(tmp_path / "pyproject.toml", f"{table}\nsync-threads = 2")
    assert agent(files=tmp_path).sync_threads == 2


def test_named_clients_are_read_from_files(tmp_path):
    write(tmp_path / "acp.toml", "[clients.My_Agent.transport.stdio]\ncommand = 'x'\nenv = {Key = 'v'}")
    found = AcpClientSettings.load_named(environ={}, files=tmp_path)
    assert found["my-agent"].transport.stdio.env == {"Key": "v"}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({}, False),
        ({"mapping": {}}, False),
        ({"mapping": {"acp": 1}}, True),
        ({"environ": {"ACP_AGENT_X": "1"}}, True),
        ({"environ": {"ACP_CLIENT_X": "1", "ACP": "1"}}, False),
    ],
)
def test_whether_anything_is_set(sources, expected):
    assert anything_set(**{"environ": {}, **sources}) is expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("acp.toml", "[agent]\nenabled = true", True),
        ("acp.toml", "", False),
        ("pyproject.toml", "[project]\nname = 'acp'", False),
        ("pyproject.toml", "[tool.acp.agent]\nenabled = true", True),
    ],
)
def test_whether_a_file_sets_anything(tmp_path, name, text, expected):
    write(tmp_path / name, text)
    assert anything_set(environ={}, files=tmp_path) is expected


def test_finding_out_whether_anything_is_set_loads_no_settings_library():
    script = (
        "import sys, acp_integration, acp_integration.configuration as configuration\n"
        "configuration.anything_set(files='.')\n"
        "print(sorted({'pydantic', 'pydantic_settings', 'dotenv'} & set(sys.modules)))"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environ, check=True)
    assert done.stdout == "[]\n"


def module(name, **attributes):
    made = type(sys)(name)
    vars(made).update(attributes)
    return made


def test_the_project_of_a_module_is_where_its_top_level_package_lies(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "shop", module("shop", __path__=[str(tmp_path / "shop")], __file__=None))
    assert project_directory("shop.agents.echo") == tmp_path


def test_the_project_of_a_source_directory_is_its_parent(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "shop", module("shop", __path__=[str(tmp_path / "src" / "shop")]))
    assert project_directory("shop") == tmp_path


def test_the_project_of_a_plain_module_is_its_directory(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "shop", module("shop", __file__=str(tmp_path / "shop.py")))
    assert project_directory("shop") == tmp_path


def test_a_module_made_of_no_file_has_no_project():
    assert project_directory("sys") is None
    assert project_directory("no_such_module") is None
