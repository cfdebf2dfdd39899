"""What a person sees of a turn, and what they are asked: text on standard output, all else on standard error."""

import json
import sys
from argparse import Namespace
from typing import Any, Final

import anyio.to_thread

from acp_integration.types import Update

_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


class Terminal:
    """Shows updates as they come, and asks for permission where a person sits."""

    def __init__(self, options: Namespace) -> None:
        self._json = options.json
        self._answer = "allow" if options.approve_all else "reject" if options.deny_all else None
        self._colours = sys.stderr.isatty()
        self._at_line_start = True

    async def show(self, update: Update) -> None:
        """Show one update."""
        if self._json:
            print(json.dumps(update.raw), flush=True)
        elif update.kind == "agent_message_chunk":
            print(update.text or "", end="", flush=True)
            self._at_line_start = (update.text or "\n").endswith("\n")
        elif update.kind == "agent_thought_chunk":
            self._aside(update.text or "")
        elif update.kind in ("tool_call", "tool_call_update"):
            self._aside(_tool_line(update.raw))

    def finish(self, stop_reason: str) -> None:
        """Show how the turn ended."""
        if self._json:
            print(json.dumps({"stopReason": stop_reason}), flush=True)
            return
        if not self._at_line_start:
            print(flush=True)
            self._at_line_start = True
        if stop_reason != "end_turn":
            self._aside(f"[{stop_reason}]")

    async def permit(self, request: Any) -> str | None:
        """Answer a permission request: as told on the command line, by the person, or with a refusal."""
        title = getattr(request.tool_call, "title", None) or "go on"
        if self._answer is None and sys.stdin.isatty():
            return await anyio.to_thread.run_sync(self._ask, title, request.options, abandon_on_cancel=True)
        wanted = self._answer or "reject"
        if self._answer is None:
            self._aside(f"refused, nobody can be asked (--approve-all allows it): {title}")
        return next((option.option_id for option in request.options if option.kind.startswith(wanted)), None)

    def _ask(self, title: str, options: Any) -> str | None:
        print(f"\nThe agent asks: {title}", file=sys.stderr)
        for number, option in enumerate(options, 1):
            print(f"  {number}. {option.name}", file=sys.stderr)
        print("Choose a number, anything else refuses: ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip()
        chosen = int(answer) - 1 if answer.isdigit() else -1
        return options[chosen].option_id if 0 <= chosen < len(options) else None

    def _aside(self, text: str) -> None:
        if not self._at_line_start:
            print(flush=True)
            self._at_line_start = True
        print(f"{_DIM}{text}{_PLAIN}" if self._colours else text, file=sys.stderr, flush=True)


def _tool_line(raw: Any) -> str:
    title, status = raw.get("title") or raw.get("toolCallId", ""), raw.get("status", "")
    return f"* {title} {status}".rstrip()
