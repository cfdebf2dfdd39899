"""`editor NAME TARGET`: the entry that makes an editor start the agent."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from acp_integration.cli.program import Program
from acp_integration.cli.surroundings import common_words
from acp_integration.transports.guard import StandardStreams

HELP: Final = "print the entry that makes an editor start the agent"
DESCRIPTION: Final = (
    "Print a ready entry for an editor. It names this interpreter and the target's directory by absolute paths, so it "
    "works whatever folder and environment the editor starts it in. What --trace, --log-level and --log-file say goes "
    "into the entry."
)
EXAMPLE: Final = "editor zed {target}"


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    command.add_argument("editor", metavar="NAME", choices=sorted(_ENTRIES), help=", ".join(sorted(_ENTRIES)))
    program.add_arguments(command)
    command.add_argument("--title", default="My agent", help="what the editor calls the agent")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Print the entry, with a line on standard error that says where it belongs."""
    place, entry = _ENTRIES[options.editor]
    # The interpreter's safe mode keeps modules of the folder an editor starts the agent in from being imported.
    words = [sys.executable, "-P", "-m", *program.stdio_words(options), *common_words(options)]
    print(f"# {place}", file=sys.stderr)
    print(entry(options.title, words))
    return 0


def app_dir_words(options: Namespace) -> list[str]:
    """How a target that is imported says where from."""
    return ["--app-dir", os.path.abspath(options.app_dir or os.getcwd())]


def _server(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:]), "env": {}}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _quoted(text: str) -> str:
    """A string of Lua; its escapes are those of JSON, but for characters that need none."""
    return json.dumps(text, ensure_ascii=False)


def _agent_servers(title: str, words: Sequence[str]) -> str:
    return _json({"agent_servers": {title: _server(words)}})


def _zed(title: str, words: Sequence[str]) -> str:
    return _json({"agent_servers": {title: {"type": "custom", **_server(words)}}})


def _vscode(title: str, words: Sequence[str]) -> str:
    return _json({"acp.agents": {title: _server(words)}})


def _neovim(title: str, words: Sequence[str]) -> str:
    arguments = ", ".join(_quoted(word) for word in words[1:])
    return (
        f"acp_providers = {{\n  [{_quoted(title)}] = {{\n    command = {_quoted(words[0])},\n"
        f"    args = {{ {arguments} }},\n    env = {{}},\n  }},\n}}"
    )


def _generic(title: str, words: Sequence[str]) -> str:  # noqa: ARG001  # every editor's entry has a title
    return _json(_server(words))


_ENTRIES: Final[Mapping[str, tuple[str, Callable[[str, Sequence[str]], str]]]] = {
    "zed": ("belongs into Zed's settings.json", _zed),
    "jetbrains": ("belongs into ~/.jetbrains/acp.json", _agent_servers),
    "neovim": ("belongs into the setup of avante.nvim", _neovim),
    "vscode": ("belongs into settings.json, read by the ACP client extension", _vscode),
    "generic": ("the program, its arguments and its environment", _generic),
}
