"""What a parameter's annotation means, found for one parameter at a time and without importing the official SDK.

Looked up in the module's names, then in those of the class and of the functions around it. What is known by name
wherever it was imported, under `TYPE_CHECKING` only too, is our own contexts and the models of the SDK.
"""

import builtins
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

from acp_integration import context, sdk

_BY_VALUE: Mapping[str, Any] = {"annotation_format": 4} if sys.version_info >= (3, 14) else {}  # FORWARDREF


class ModelName(type):
    """A name that stands for one of the SDK's models, or for a module that may hold it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return named(name)


def named(name: str) -> Any:
    """What a name means that is not found where it is used."""
    return getattr(context, name) if name in context.__all__ else ModelName(name, (), {})


class _Names(Mapping[str, Any]):
    """The names an annotation can use."""

    def __init__(self, function: Callable[..., Any], owner: type | None) -> None:
        plain = inspect.unwrap(function)
        freevars = getattr(getattr(plain, "__code__", None), "co_freevars", ())
        cells = zip(freevars, getattr(plain, "__closure__", None) or (), strict=False)
        self._spaces = (
            getattr(plain, "__globals__", {}),
            vars(builtins),  # before the class, whose own methods may be named like builtins
            *(vars(each) for each in (owner.__mro__ if owner else ())),
            {name: cell.cell_contents for name, cell in cells if _is_filled(cell)},
        )

    def __getitem__(self, name: str) -> Any:
        for space in self._spaces:
            if name in space:
                return space[name]
        return named(name)

    def __iter__(self) -> Iterator[str]:
        return iter({name: None for space in self._spaces for name in space})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def parameters_of(function: Callable[..., Any], owner: type | None) -> list[inspect.Parameter]:
    """The parameters of a bound handler, each with its annotation resolved as far as it can be."""
    names = _Names(function, owner)
    found = inspect.signature(function, **_BY_VALUE).parameters.values()
    return [parameter.replace(annotation=resolve(parameter.annotation, names)) for parameter in found]


def return_annotation(function: Callable[..., Any], owner: type | None) -> Any:
    """The annotation of what a handler returns, resolved; `inspect.Signature.empty` without one."""
    signature = inspect.signature(function, **_BY_VALUE)
    return resolve(signature.return_annotation, _Names(function, owner))


def resolve(annotation: Any, names: Mapping[str, Any]) -> Any:
    """An annotation given as text or as an object; text that means nothing stays text."""
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    if isinstance(text, str):
        try:
            return resolve(eval(text, {"__builtins__": {}}, names), names)  # noqa: S307
        except Exception:  # noqa: BLE001  # whatever a stranger's annotation raises: it cannot be told what it means
            return text
    if any(isinstance(part, str | ForwardRef) for part in get_args(annotation)):
        return _with_resolved_parts(annotation, names)
    return annotation


def _with_resolved_parts(annotation: Any, names: Mapping[str, Any]) -> Any:
    if get_origin(annotation) is Annotated:
        first, *marks = get_args(annotation)
        return Annotated[(resolve(first, names), *marks)]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(resolve(part, names) for part in get_args(annotation))]  # noqa: UP007  # parts known only now
    return annotation


def choices(annotation: Any) -> tuple[Any, ...]:
    """The types a value may have: the members of a union without None, behind any `Annotated`."""
    if get_origin(annotation) is Annotated:
        return choices(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) if part is not type(None) for choice in choices(part))
    return (annotation,)


def is_unresolved(annotation: Any) -> bool:
    """Whether an annotation has a name that means nothing here."""
    return any(
        isinstance(choice, str) or (isinstance(choice, ModelName) and not sdk.is_model_name(choice.__name__))
        for choice in choices(annotation)
    )


def model_name(annotation: Any) -> str | None:
    """The name of the SDK's model that an annotation is, by name or as the class itself."""
    if isinstance(annotation, ModelName):
        return annotation.__name__
    if isinstance(annotation, type) and annotation.__module__.partition(".")[0] == "acp":
        return annotation.__name__
    return None


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an empty cell can only be told by reading it
    except ValueError:
        return False
    return True
