"""The page that lists every key, written from the code: ``python -m acp_integration.settings.documentation``."""

import sys
from collections.abc import Iterator
from typing import Final

from acp_integration.configuration.keys import dotted, environment_name, prefix_path
from acp_integration.configuration.schema import Key, schema_of
from acp_integration.settings.agent import AcpAgentSettings
from acp_integration.settings.client import AcpClientSettings
from acp_integration.settings.report import default_text
from acp_integration.settings.sections import Settings

_INTRODUCTION: Final = """\
# Settings

Everything that can be set, with the default that is in effect when nobody sets it. This page is written by
`python -m acp_integration.settings.documentation > docs/settings.md`.

## How a key is spelled

| where | spelling |
|---|---|
| this page, error texts | `acp.agent.transport.http.path` |
| environment, `.env` | `ACP_AGENT_TRANSPORT_HTTP_PATH` |
| Django's `settings.ACP` | `{"agent": {"transport": {"http": {"path": "/acp"}}}}` |
| `acp.toml` | `[agent.transport.http]` and `path = "/acp"` |
| `pyproject.toml` | `[tool.acp.agent.transport.http]` and `path = "/acp"` |
| Python | `AcpAgentSettings(transport=AgentTransport(http=Http(path="/acp")))` |

In a mapping and in a file, kebab-case, snake_case and upper case are the same key, nested or dotted.

## Where a value comes from

The first place that sets a key wins: arguments, the environment, a `.env` file that was named, the framework's own
settings, files, the default. Files are `acp.toml` and then `[tool.acp]` of `pyproject.toml`, looked for beside the
project of the agent and never in the working directory: an editor starts an agent inside somebody else's repository.

A key that does not exist is an error that names the nearest one which does. In the environment it is only a warning,
because platforms invent variables. All bad keys are reported in one error, each as it was written; secrets are masked.

## How a value is written

| kind | how it is written |
|---|---|
| duration | digits and `ms`, `s`, `m`, `h` or `d`, or ISO-8601: `30s`, `PT1M`; a bare number is **milliseconds** |
| size | digits and `B`, `K`, `KB`, `M`, `MB`, `G` or `GB`, powers of 1024; a bare number is bytes |
| list | separated by commas, or a JSON array; in a mapping or a file also a list |
| table | in the environment one JSON object; elsewhere a table, whose names keep their case |
| true or false | these two words, in any case |

A blank value is the same as none. A duration of 0 means no limit where the default may be no limit.
"""

_AGENT: Final = """
## Agent

Keys of the agent that this process serves, under `acp.agent`. A `drain-timeout` or `abort-timeout` of 0 does not wait.
"""

_CLIENT: Final = """
## Client

Keys of the client that drives an agent, under `acp.client`. Several clients have a name each and the same keys under
`acp.clients.<name>`: `acp.clients.my-agent.request-timeout` is `ACP_CLIENTS_MY_AGENT_REQUEST_TIMEOUT`, and
`ACP_CLIENTS_MY_AGENT` takes all of its keys as one JSON object, `ACP_CLIENTS` all clients. Closing a client may take
its request timeout plus ten seconds.
"""


def page() -> str:
    """The text of ``docs/settings.md``."""
    agent, client = _table(AcpAgentSettings), _table(AcpClientSettings)
    return "\n".join((_INTRODUCTION + _AGENT, *agent, _CLIENT, *client)) + "\n"


def _table(settings: type[Settings]) -> Iterator[str]:
    yield "| key | kind | default | meaning |"
    yield "|---|---|---|---|"
    for key in schema_of(settings).keys.values():
        yield _row(settings, key)


def _row(settings: type[Settings], key: Key) -> str:
    prefix = prefix_path(settings.default_prefix)
    spellings = f"`{dotted(prefix, key.path)}`<br>`{environment_name(prefix, key.path)}`"
    return f"| {spellings} | {key.kind.label} | {default_text(settings, key)} | {key.meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
