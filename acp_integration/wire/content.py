"""Content blocks: what prompts, messages and tool results are made of."""

from collections.abc import Mapping
from typing import Any, Literal

from acp_integration.wire.structure import Choice, Items, Lenient, Unknown, WireStruct

Role = Literal["assistant", "user"]


class Annotations(WireStruct):
    """Hints on how to use or show a block."""

    audience: Items[list[Role] | None] = None
    last_modified: Lenient[str | None] = None
    priority: Lenient[float | None] = None


class TextContent(WireStruct, tag_field="type", tag="text"):
    """Plain text or Markdown."""

    text: str
    annotations: Lenient[Annotations | None] = None


class ImageContent(WireStruct, tag_field="type", tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str
    uri: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class AudioContent(WireStruct, tag_field="type", tag="audio"):
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    annotations: Lenient[Annotations | None] = None


class ResourceLink(WireStruct, tag_field="type", tag="resource_link"):
    """A reference to something the agent can fetch; `size` is bytes."""

    name: str
    uri: str
    description: Lenient[str | None] = None
    mime_type: Lenient[str | None] = None
    size: Lenient[int | None] = None
    title: Lenient[str | None] = None
    annotations: Lenient[Annotations | None] = None


class ResourceContents(Choice):
    """What an embedded resource holds: text or base64."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> type[Choice] | None:
        """Text wherever there is text."""
        binary = "blob" in value and not isinstance(value.get("text"), str)
        return BlobResourceContents if binary else TextResourceContents


class TextResourceContents(WireStruct, ResourceContents):
    """An embedded resource that is text."""

    text: str
    uri: str
    mime_type: Lenient[str | None] = None


class BlobResourceContents(WireStruct, ResourceContents):
    """An embedded resource that is binary; `blob` is base64."""

    blob: str
    uri: str
    mime_type: Lenient[str | None] = None


class EmbeddedResource(WireStruct, tag_field="type", tag="resource"):
    """A resource whose contents come along."""

    resource: ResourceContents
    annotations: Lenient[Annotations | None] = None


class UnknownContent(Unknown, tag_field="type"):
    """A kind of content block that this version does not know."""


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
ReceivedContent = ContentBlock | UnknownContent
