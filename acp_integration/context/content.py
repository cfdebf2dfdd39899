"""Reading the content of a prompt."""

from collections.abc import Sequence
from typing import Any

import msgspec

from acp_integration.wire.content import TextContent


class SlashCommand(msgspec.Struct, frozen=True):
    """A prompt that is a command.

    Attributes:
        name: the name, without the slash.
        argument: the text behind the name, without the space around it.
    """

    name: str
    argument: str = ""


def text_of(blocks: Sequence[Any]) -> str:
    """The text blocks, joined."""
    if len(blocks) == 1 and type(blocks[0]) is TextContent:  # nearly every prompt
        return blocks[0].text
    return "".join([block.text for block in blocks if isinstance(block, TextContent)])


def command_of(text: str) -> SlashCommand | None:
    """The command a text gives, or None."""
    head, *rest = text.split(maxsplit=1) or [""]
    name = head.removeprefix("/")
    if not head.startswith("/") or not name or "/" in name:
        return None
    return SlashCommand(name, "".join(rest).rstrip())
