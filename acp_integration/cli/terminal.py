"""What a person sees of a turn, and what they are asked: text on standard output, all else on standard error."""

import json
import os
import sys
from argparse import Namespace
from typing import Any, Final

from acp_integration.cli.lines import standard_input
from acp_integration.client.permissions import deny, option_of_kind
from acp_integration.types import Update

_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
# What an agent says must not move the cursor or forge a question.
_CONTROLS: Final = {code: None for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}


class Terminal:
    """Shows updates as they come, and asks for permission where a person sits."""

    def __init__(self, options: Namespace) -> None:
        self._json = options.json
        self._approve, self._deny = options.approve_all, options.deny_all
        self._person = sys.stdin is not None and sys.stdin.isatty()
        self._screen = sys.stdout.isatty()
        self._colours = sys.stderr.isatty()
        self._lines = standard_input()
        self._at_line_start = True
        self._titles: dict[str, str] = {}

    async def show(self, update: Update) -> None:
        """Show one update."""
        if update.kind in ("tool_call", "tool_call_update"):
            self._remember(update.raw)
        if self._json:
            _put(f"{json.dumps(update.raw)}\n")
        elif update.kind == "agent_message_chunk":
            self._stream(update.text or "")
        elif update.kind == "agent_thought_chunk":
            self._aside(update.text or "")
        elif update.kind in ("tool_call", "tool_call_update"):
            self._aside(self._tool_line(update.raw))

    def finish(self, stop_reason: str) -> None:
        """Show how the turn ended."""
        self._titles.clear()
        if self._json:
            _put(f"{json.dumps({'stopReason': stop_reason})}\n")
            return
        self._end_line()
        if stop_reason != "end_turn":
            self._aside(f"[{stop_reason}]")

    def complain(self, text: str) -> None:
        """Say what went wrong with a turn."""
        self._aside(text)

    async def read(self) -> str | None:
        """What the person says next, or None if nothing comes any more."""
        if self._person:
            print("> ", end="", file=sys.stderr, flush=True)
        return await self._lines.next()

    async def permit(self, request: Any) -> str | None:
        """Answer a permission request: as told on the command line, by the person, or with a refusal."""
        call = request.tool_call
        title = _plain(call.title or self._titles.get(call.tool_call_id, call.tool_call_id))
        if self._approve:
            return option_of_kind(request, "allow_once", "allow_always")
        if self._person and not self._deny:
            return await self._ask(title, request)
        if not self._deny:
            self._aside(f"refused, nobody can be asked (--approve-all allows it): {title}")
        return deny(request)

    async def _ask(self, title: str, request: Any) -> str | None:
        self._end_line()
        print(f"The agent asks: {title}", file=sys.stderr)
        for number, option in enumerate(request.options, 1):
            print(f"  {number}. {_plain(option.name)}", file=sys.stderr)
        print("Choose a number, anything else refuses: ", end="", file=sys.stderr, flush=True)
        answer = await self._lines.next() or ""
        chosen = int(answer) - 1 if answer.isdecimal() else -1
        return request.options[chosen].option_id if 0 <= chosen < len(request.options) else deny(request)

    def _tool_line(self, raw: Any) -> str:
        return f"* {self._titles[raw.get('toolCallId', '')]} {raw.get('status') or ''}".rstrip()

    def _remember(self, raw: Any) -> None:
        """Keep what a tool call does: later updates of it, and questions about it, may leave that out."""
        call = raw.get("toolCallId", "")
        self._titles[call] = raw.get("title") or self._titles.get(call, call)

    def _stream(self, text: str) -> None:
        _put(_plain(text) if self._screen else text)
        self._at_line_start = text.endswith("\n") if text else self._at_line_start

    def _aside(self, text: str) -> None:
        self._end_line()
        if self._colours:
            text = f"{_DIM}{_plain(text)}{_PLAIN}"
        print(text, file=sys.stderr, flush=True)

    def _end_line(self) -> None:
        if not self._at_line_start:
            _put("\n")
            self._at_line_start = True


def _put(text: str) -> None:
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        # Whoever read has seen enough: the turn still ends in order.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _plain(text: str) -> str:
    return text.translate(_CONTROLS)
