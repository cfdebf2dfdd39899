"""Building a client: settings, customizers, the check of capabilities against handlers, one client a transport."""

import logging

import pytest

from acp_integration.client.builder import ClientBuilder, announced, build_client
from acp_integration.errors import ConfigurationError, TransportSelectionError
from acp_integration.options import ClientOptions
from acp_integration.transports.memory import memory_transport_pair


@pytest.fixture
def transport():
    return memory_transport_pair()[0]


async def handler(_request):
    return None


def test_building_opens_nothing(transport):
    client = build_client(transport)
    assert not client.closed
    assert client.agent is None


def test_customizers_are_called_in_order(transport):
    called = []
    build_client(transport, None, [lambda _: called.append(1), lambda _: called.append(2)])
    assert called == [1, 2]


def test_options_come_from_the_settings(transport, make_settings):
    client = build_client(transport, make_settings(request_timeout=3.0))
    assert client.options.request_timeout == 3.0


def test_the_close_timeout_is_the_request_timeout_and_ten_seconds():
    assert ClientOptions().close_timeout == 70
    assert ClientOptions(request_timeout=5).close_timeout == 15


def test_a_second_client_on_one_transport_is_refused_when_it_is_built(transport):
    build_client(transport)
    with pytest.raises(ConfigurationError, match="has a client already"):
        build_client(transport)


def test_a_build_that_failed_leaves_the_transport_free(transport, make_settings):
    with pytest.raises(ConfigurationError):
        build_client(transport, make_settings("terminal"))
    build_client(transport)


def test_a_capability_without_its_handler_fails_the_build_naming_the_setting(transport, make_settings):
    settings = make_settings("read_text_file", "write_text_file", "boolean_config_options")
    with pytest.raises(ConfigurationError) as failure:
        build_client(transport, settings, [lambda builder: builder.on_write_text_file(handler)])
    assert str(failure.value) == (
        "The client advertises capabilities it has no handler for: fs.readTextFile needs on_read_text_file. "
        "The capabilities come from acp.client.capabilities.read-text-file=true: "
        "register the handlers in a client customizer, or set the settings to false"
    )


def test_a_terminal_needs_all_five_handlers_and_the_missing_are_named(transport, make_settings):
    def customize(builder):
        builder.on_create_terminal(handler)
        builder.on_kill_terminal(handler)

    with pytest.raises(ConfigurationError) as failure:
        build_client(transport, make_settings("terminal"), [customize], prefix="acp.clients.coder")
    assert "terminal needs on_terminal_output, on_release_terminal, on_wait_for_terminal_exit." in str(failure.value)
    assert "acp.clients.coder.capabilities.terminal=true" in str(failure.value)


def test_both_elicitation_settings_are_named_and_the_need_only_once(transport, make_settings):
    with pytest.raises(ConfigurationError) as failure:
        build_client(transport, make_settings("elicitation_form", "elicitation_url"))
    assert str(failure.value).count("elicitation needs on_elicitation") == 1
    assert "elicitation-form=true, acp.client.capabilities.elicitation-url=true" in str(failure.value)


def test_a_capability_that_code_announced_blames_no_setting(transport):
    with pytest.raises(ConfigurationError) as failure:
        build_client(transport, None, [lambda builder: builder.announce("terminal")])
    assert "The capabilities come from" not in str(failure.value)


def test_an_unknown_capability_is_refused(transport):
    with pytest.raises(ConfigurationError, match="no client capability teleport"):
        ClientBuilder(transport).announce("teleport")


def test_what_a_customizer_raises_passes_through_untouched(transport):
    error = LookupError("mine")

    def customize(_builder):
        raise error

    with pytest.raises(LookupError) as failure:
        build_client(transport, None, [customize])
    assert failure.value is error


def test_a_second_handler_for_a_request_is_refused(transport):
    builder = ClientBuilder(transport)
    builder.on_permission(handler)
    with pytest.raises(ConfigurationError, match="session/request_permission already"):
        builder.on_permission(handler)


def test_an_extension_handler_is_not_for_methods_of_the_protocol(transport):
    with pytest.raises(ConfigurationError, match="use on_read_text_file"):
        ClientBuilder(transport).on_ext_request("fs/read_text_file", handler)


def test_a_handler_without_its_capability_gives_one_warning(transport, caplog):
    build_client(transport, None, [lambda builder: builder.on_read_text_file(handler)])
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "fs.readTextFile" in warnings[0]


def test_what_is_announced_is_what_is_switched_on_and_nothing_else():
    assert announced([]) == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert announced(["elicitation_url", "boolean_config_options", "terminal", "read_text_file"]) == {
        "fs": {"readTextFile": True, "writeTextFile": False},
        "terminal": True,
        "elicitation": {"url": {}},
        "session": {"configOptions": {"boolean": {}}},
    }


async def test_initialize_says_who_the_client_is_and_what_it_can_do(agent, opened, make_settings):
    def customize(builder):
        builder.info("shop", "2.0", title="The shop")
        builder.on_read_text_file(handler)

    await opened(customize, settings=make_settings("read_text_file"))
    [initialize] = await agent.wait_for("initialize")
    assert initialize.params == {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": False}, "terminal": False},
        "clientInfo": {"name": "shop", "version": "2.0", "title": "The shop"},
    }


def test_no_transport_is_said_with_the_keys_that_name_one() -> None:
    with pytest.raises(
        TransportSelectionError, match=r"set one of acp\.client\.transport\.stdio\.command, .*http\.uri"
    ):
        build_client(None)
