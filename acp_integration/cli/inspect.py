"""`inspect TARGET`: what would be served, and which settings are in force."""

import json
from argparse import ArgumentParser, Namespace
from typing import Any, Final

from acp_integration.cli.interruption import Interruption, run_interruptibly
from acp_integration.cli.program import Program, Served
from acp_integration.cli.starting import Start
from acp_integration.endpoint.census import running_workers
from acp_integration.settings import AcpAgentSettings
from acp_integration.settings.report import report
from acp_integration.transports.guard import StandardStreams

HELP: Final = "show the agent, its handlers, what it advertises, and the settings in force"
DESCRIPTION: Final = (
    "Build the agent without serving it, and show its name, its handlers, what a client will be told, the settings in "
    "force and where each was set, how many threads sync handlers get, and what the worker processes of this user's "
    "servers hold now."
)
EXAMPLE: Final = "inspect {target} --json"


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Print what there is."""
    start = Start(program, options).load()

    async def look(_: Interruption) -> int:
        async with start.open() as served:
            found = {**describe(served), "workers": await running_workers()}
        print(json.dumps(found, indent=2) if options.json else _for_people(found))
        return 0

    return run_interruptibly(look)


def describe(served: Served) -> dict[str, Any]:
    """Everything the command shows, as JSON values."""
    settings = served.settings or AcpAgentSettings()
    return {
        **({} if served.builder is None else served.builder.describe()),
        "settings": {
            f"{settings.default_prefix}.{row.key}": {"value": row.value, "origin": row.origin}
            for row in report(settings, served.origins)
        },
        "threads": served.options.sync_threads,
    }


def _for_people(found: dict[str, Any]) -> str:
    agent = found.get("agent", {})
    lines = [f"agent     {agent.get('name', '?')} {agent.get('version', '')} ({agent.get('class', '?')})", ""]
    lines += [f"handler   {one['method']:28} {one['name']} ({one['kind']})" for one in found.get("handlers", ())]
    lines += ["", "advertises", json.dumps(found.get("initialize", {}), indent=2), ""]
    lines += [f"setting   {key} = {one['value']}  [{one['origin']}]" for key, one in found["settings"].items()]
    lines += ["", f"threads   {found['threads']} for sync handlers"]
    lines += [f"worker    {', '.join(f'{name} {value}' for name, value in one.items())}" for one in found["workers"]]
    return "\n".join(lines)
