"""`inspect TARGET`: what would be served, and which settings are in force."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from typing import Any, Final

from acp_integration.cli.program import Program, Served
from acp_integration.transports.guard import StandardStreams

HELP: Final = "show the agent, its handlers, what it advertises, and the settings in force"
DESCRIPTION: Final = (
    "Build the agent without serving it, and show its name, its handlers, what a client will be told, the settings in "
    "force and where each was set, and how many threads sync handlers get."
)


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Print what there is."""
    found = asyncio.run(_look(program, options))
    print(json.dumps(found, indent=2) if options.json else _for_people(found))
    return 0


async def _look(program: Program, options: Namespace) -> dict[str, Any]:
    async with program.open(options) as served:
        return describe(served)


def describe(served: Served) -> dict[str, Any]:
    """Everything the command shows, as JSON values."""
    described: dict[str, Any] = {} if served.builder is None else served.builder.describe()
    options = {name: getattr(served.options, name) for name in served.options.__slots__}
    return {
        **described,
        "settings": {
            name.replace("_", "-"): {"value": value, "from": served.origins.get(name.replace("_", "-"), "default")}
            for name, value in options.items()
        },
        "threads": served.options.sync_threads,
    }


def _for_people(found: dict[str, Any]) -> str:
    agent = found.get("agent", {})
    lines = [f"agent     {agent.get('name', '?')} {agent.get('version', '')} ({agent.get('class', '?')})".rstrip(), ""]
    lines += [f"handler   {one['method']:28} {one['name']} ({one['kind']})" for one in found.get("handlers", ())]
    lines += ["", "advertises", json.dumps(found.get("initialize", {}), indent=2), ""]
    lines += [
        f"setting   {name:28} {'unlimited' if one['value'] is None else one['value']}  [{one['from']}]"
        for name, one in found["settings"].items()
    ]
    return "\n".join([*lines, "", f"threads   {found['threads']} for sync handlers"])
