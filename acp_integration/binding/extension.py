"""The params of an extension as the type its handler asks for: any JSON type, a dataclass, a pydantic model."""

import re
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Final

import msgspec

from acp_integration import sdk
from acp_integration.binding import annotations
from acp_integration.context.invocation import Invocation
from acp_integration.wire.decoding import InvalidParams

_PLACE: Final = re.compile(r" - at `\$(.*)`$")


def params_decoder(annotation: Any) -> Callable[[Invocation], Any]:
    """What decodes the params of one call; raises InvalidParams, which names the place and never the value."""
    wanted = Any if annotation in (Parameter.empty, object) else annotation
    if _is_pydantic(wanted):
        return lambda invocation: sdk.as_model(wanted, bytes(invocation.params))
    decoder = msgspec.json.Decoder(wanted)

    def decode(invocation: Invocation) -> Any:
        try:
            return decoder.decode(invocation.params)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            raise InvalidParams("params" + (place[1] if place else ""), "is not what the handler takes") from None

    return decode


def _is_pydantic(annotation: Any) -> bool:
    return any(sdk.is_model_class(choice) for choice in annotations.choices(annotation))
