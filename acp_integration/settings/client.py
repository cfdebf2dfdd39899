"""The settings of a client that drives an agent."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field

from acp_integration.configuration.files import Files
from acp_integration.configuration.kinds import (
    Duration,
    Flag,
    HttpUri,
    Items,
    PositiveDuration,
    Secrets,
    SecretTable,
    Size,
    Text,
    TransportType,
    WebSocketUri,
)
from acp_integration.configuration.loading import read_named
from acp_integration.configuration.places import Places
from acp_integration.options import ClientOptions
from acp_integration.settings.sections import Section, Settings, options_of


class Stdio(Section):
    """An agent that is started as a child process."""

    command: Text | None = Field(default=None, description="Program to start.")
    args: Items = Field(default=(), description="Arguments of the program.")
    env: SecretTable = Field(
        default=Secrets(), description="Variables added to the environment of the program; names keep their case."
    )
    cwd: Text | None = Field(default=None, description="Directory the program is started in.")
    inherit_environment: Flag | None = Field(
        default=None, description="Hand the environment of this process to the program."
    )


class WebSocket(Section):
    """An agent that is reached over WebSocket."""

    uri: WebSocketUri | None = Field(default=None, description="Address of the agent, for example `wss://host/acp`.")
    connect_timeout: PositiveDuration | None = Field(default=None, description="How long connecting may take.")
    headers: SecretTable = Field(default=Secrets(), description="Headers of the handshake.")


class ClientHttp(Section):
    """An agent that is reached over Streamable HTTP."""

    uri: HttpUri | None = Field(default=None, description="Address of the agent, for example `https://host/acp`.")
    headers: SecretTable = Field(default=Secrets(), description="Headers of every request.")


class ClientTransport(Section):
    """How the agent is reached; the type need not be set when one transport is."""

    type: TransportType | None = Field(default=None, description="Which transport to use when several are set.")
    stdio: Stdio = Stdio()
    websocket: WebSocket = WebSocket()
    http: ClientHttp = ClientHttp()


class Capabilities(Section):
    """What the client offers to the agent; each needs its handler."""

    read_text_file: Flag | None = Field(default=None, description="Offer to read text files.")
    write_text_file: Flag | None = Field(default=None, description="Offer to write text files.")
    terminal: Flag | None = Field(default=None, description="Offer terminals.")
    elicitation_form: Flag | None = Field(default=None, description="Offer to ask the user with a form.")
    elicitation_url: Flag | None = Field(default=None, description="Offer to send the user to an URL.")
    boolean_config_options: Flag | None = Field(default=None, description="Offer session options that are on or off.")

    def protocol(self) -> dict[str, Any]:
        """The capabilities as ``initialize`` announces them."""
        announced: dict[str, Any] = {
            "fs": {"readTextFile": bool(self.read_text_file), "writeTextFile": bool(self.write_text_file)},
            "terminal": bool(self.terminal),
        }
        modes = {"form": self.elicitation_form, "url": self.elicitation_url}
        if any(modes.values()):
            announced["elicitation"] = {mode: {} for mode, offered in modes.items() if offered}
        if self.boolean_config_options:
            announced["session"] = {"configOptions": {"boolean": {}}}
        return announced


class AcpClientSettings(Settings):
    """What can be set for a client; whatever is unset keeps the default of the part it is for.

    Made directly, an invalid value raises pydantic's ``ValidationError``; `from_mapping` and `load` raise
    `ConfigurationError` instead, with one line for every bad key.
    """

    default_prefix: ClassVar[str] = "acp.client"
    defaults: ClassVar[tuple[Any, ...]] = (ClientOptions(),)
    named_prefix: ClassVar[str] = "acp.clients"

    request_timeout: Duration | None = Field(
        default=None, description="How long the agent may take to answer, but for a prompt."
    )
    prompt_timeout: Duration | None = Field(default=None, description="How long the agent may take to answer a prompt.")
    initialize_timeout: PositiveDuration | None = Field(default=None, description="How long `initialize` may take.")
    max_message_size: Size | None = Field(default=None, description="Largest message accepted, on every transport.")
    transport: ClientTransport = ClientTransport()
    capabilities: Capabilities = Capabilities()

    @classmethod
    def load_named(
        cls,
        mapping: Mapping[str, Any] | None = None,
        *,
        prefix: str | None = None,
        environ: Mapping[str, str] | None = None,
        files: Files = (),
    ) -> dict[str, Self]:
        """Read the settings of every named client, ``acp.clients.<name>.*``, from the sources that `load` reads.

        Names are in lower case with dashes: ``ACP_CLIENTS_MY_AGENT_REQUEST_TIMEOUT`` belongs to ``my-agent``.

        Raises:
            ConfigurationError: with one line for every bad key of all clients.
        """
        places = Places(environ=environ, mapping=mapping, files=files)
        loaded = read_named(cls, places, cls.named_prefix if prefix is None else prefix)
        return {name: one.settings for name, one in loaded.items()}

    @property
    def has_transport(self) -> bool:
        """Whether these settings say how an agent is reached; a framework makes a client only then."""
        transport = self.transport
        chosen = (transport.type, transport.stdio.command, transport.websocket.uri, transport.http.uri)
        return any(value is not None for value in chosen)

    def client_options(self) -> ClientOptions:
        """What bounds the client and its transport."""
        return options_of(ClientOptions, self, self.transport.websocket, self.transport.stdio)
