"""The settings of a client that drives an agent."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from acp_integration.configuration.fields import Section
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
from acp_integration.settings.sections import Settings, options_of


class Stdio(Section, frozen=True, kw_only=True):
    """An agent that is started as a child process."""

    command: Annotated[Text | None, "Program to start."] = None
    args: Annotated[Items, "Arguments of the program."] = ()
    env: Annotated[SecretTable, "Variables added to the environment of the program; names keep their case."] = Secrets()
    cwd: Annotated[Text | None, "Directory the program is started in."] = None
    inherit_environment: Annotated[Flag | None, "Hand the environment of this process to the program."] = None


class WebSocket(Section, frozen=True, kw_only=True):
    """An agent that is reached over WebSocket."""

    uri: Annotated[WebSocketUri | None, "Address of the agent, for example `wss://host/acp`."] = None
    connect_timeout: Annotated[PositiveDuration | None, "How long connecting may take."] = None
    headers: Annotated[SecretTable, "Headers of the handshake."] = Secrets()


class ClientHttp(Section, frozen=True, kw_only=True):
    """An agent that is reached over Streamable HTTP."""

    uri: Annotated[HttpUri | None, "Address of the agent, for example `https://host/acp`."] = None
    headers: Annotated[SecretTable, "Headers of every request."] = Secrets()


class ClientTransport(Section, frozen=True, kw_only=True):
    """How the agent is reached; the type need not be set when one transport is."""

    type: Annotated[TransportType | None, "Which transport to use when several are set."] = None
    stdio: Stdio = Stdio()
    websocket: WebSocket = WebSocket()
    http: ClientHttp = ClientHttp()


class Capabilities(Section, frozen=True, kw_only=True):
    """What the client offers to the agent; each needs its handler."""

    read_text_file: Annotated[Flag | None, "Offer to read text files."] = None
    write_text_file: Annotated[Flag | None, "Offer to write text files."] = None
    terminal: Annotated[Flag | None, "Offer terminals."] = None
    elicitation_form: Annotated[Flag | None, "Offer to ask the user with a form."] = None
    elicitation_url: Annotated[Flag | None, "Offer to send the user to an URL."] = None
    boolean_config_options: Annotated[Flag | None, "Offer session options that are on or off."] = None

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


class AcpClientSettings(Settings, frozen=True, kw_only=True):
    """What can be set for a client; whatever is unset keeps the default of the part it is for.

    Made directly, an invalid value raises ``ValueError``; `from_mapping` and `load` raise
    `ConfigurationError` instead, with one line for every bad key.
    """

    default_prefix: ClassVar[str] = "acp.client"
    defaults: ClassVar[tuple[Any, ...]] = (ClientOptions(),)
    named_prefix: ClassVar[str] = "acp.clients"

    request_timeout: Annotated[Duration | None, "How long the agent may take to answer, but for a prompt."] = None
    prompt_timeout: Annotated[Duration | None, "How long the agent may take to answer a prompt."] = None
    initialize_timeout: Annotated[PositiveDuration | None, "How long `initialize` may take."] = None
    max_message_size: Annotated[Size | None, "Largest message accepted, on every transport."] = None
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
