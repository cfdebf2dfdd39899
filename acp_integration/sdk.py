"""The one door to the official SDK's models."""

import sys
from typing import Any


def is_model(value: Any) -> bool:
    """Whether the value is a model of the SDK, without importing it."""
    schema = sys.modules.get("pydantic")
    return schema is not None and isinstance(value, schema.BaseModel)


def is_request_error(error: BaseException) -> bool:
    """Whether the error is the SDK's own RequestError, without importing it."""
    acp = sys.modules.get("acp")
    return acp is not None and isinstance(error, acp.RequestError)


def to_json(model: Any) -> bytes:
    """A model as JSON."""
    text: str = model.model_dump_json(by_alias=True, exclude_none=True)
    return text.encode()
