"""A transcript as a conversation: who said what, for a page that people read."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from acp_integration.store.transcript import CUT

_SPEAKERS: Final = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
    "tool_call": "tool",
    "tool_call_update": "tool",
    "plan": "plan",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One update as a person sees it.

    Attributes:
        speaker: user, agent, thought, tool, plan, or the kind of update.
        text: what was said, or a summary.
        detail: the update itself, for what a summary leaves out; empty where it says everything.
        cut: whether the turn broke off behind it.
    """

    speaker: str
    text: str
    detail: str = ""
    cut: bool = False


def conversation(updates: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """The lines of a transcript."""
    for update in updates:
        kind = str(update.get("sessionUpdate"))
        speaker = _SPEAKERS.get(kind, kind)
        text = _text(update)
        detail = "" if text and speaker in {"user", "agent", "thought"} else _detail(update)
        yield Line(speaker, text or _summary(update), detail, cut=_is_cut(update))


def _text(update: Mapping[str, Any]) -> str:
    content = update.get("content")
    return str(content["text"]) if isinstance(content, Mapping) and "text" in content else ""


def _summary(update: Mapping[str, Any]) -> str:
    content = update.get("content")
    if isinstance(content, Mapping):
        return f"[{content.get('type')}] {content.get('name') or content.get('uri') or content.get('mimeType') or ''}"
    if "entries" in update:
        return "\n".join(f"{entry.get('status')}: {entry.get('content')}" for entry in update["entries"])
    named = [update.get(name) for name in ("title", "status", "currentModeId")]
    return " - ".join(str(value) for value in named if value)


def _detail(update: Mapping[str, Any]) -> str:
    shown = {name: _shortened(value) for name, value in update.items() if name != "sessionUpdate"}
    return json.dumps(shown, ensure_ascii=False, indent=2)


def _shortened(value: Any) -> Any:
    """A value without its long strings: the data of an image is nothing to read."""
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return f"{value[:2000]}..." if isinstance(value, str) and len(value) > 2000 else value


def _is_cut(update: Mapping[str, Any]) -> bool:
    meta = update.get("_meta") or {}
    return all(meta.get(name) == value for name, value in CUT.items())
