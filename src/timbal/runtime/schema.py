"""Python signatures and types as pydantic validators and JSON Schemas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_type_hints

from ..errors import TimbalError
from ..types.json_value import json_value

#: Names that a runnable's call keeps for itself (contract section 2).
RESERVED = frozenset({"parent_id", "resume", "run_id", "labels", "by"})

_SAFE = 2**63
_SCALARS = frozenset({str, int, bool, float, type(None)})


class InvalidInput(TimbalError):
    """The arguments don't fit the signature."""


class Params:
    """The parameters of a handler: validates arguments, and describes them to a model."""

    def __init__(self, function: Callable[..., Any], owner: str) -> None:
        from pydantic import ConfigDict, Field, create_model

        signature = inspect.signature(function)
        hints = _hints(function)
        fields: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ValueError(
                    f"{owner}: its handler has the parameter {parameter}; arguments are passed by name, so name each"
                )
            if name in RESERVED:
                raise ValueError(
                    f"{owner}: its handler can't have a parameter {name!r}; the call itself has {sorted(RESERVED)}"
                )
            default = ... if parameter.default is parameter.empty else parameter.default
            field = default if type(default).__name__ == "FieldInfo" else Field(default, alias=name)
            fields[_field_name(name)] = (hints.get(name, Any), field)
        self.names = list(signature.parameters)
        self._model = create_model(
            f"{owner} input".title().replace(" ", "").replace("'", ""),
            __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=()),
            **fields,
        )
        self._plain = all(_field_name(n) == n for n in self.names)
        self._validate = self._model.__pydantic_validator__.validate_python
        self._function = function

    def prepare(
        self, arguments: dict[str, Any], *, stored: bool | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments as the handler takes them, defaults filled in, and as JSON.

        `stored` as in `validate`. Raises `InvalidInput`, naming what is wrong.
        """
        values = self.validate(arguments, stored=stored)
        for value in values.values():
            kind = type(value)
            if not (
                (kind is int and -_SAFE < value < _SAFE)
                or (kind is str and value.isascii())
                or value is None
                or kind is bool
            ):
                return values, self._dump(values)
        return values, {**values}

    def validate(self, arguments: dict[str, Any], *, stored: bool | None = None) -> dict[str, Any]:
        """The arguments as the handler takes them, defaults filled in; raises `InvalidInput`.

        `stored`: they are what `prepare` gave as JSON, where the fields of models go by their names, not their aliases.
        """
        try:
            model = self._validate(arguments, by_name=stored, by_alias=stored)
        except ValueError as error:
            raise InvalidInput(self._explain(error)) from None
        values: dict[str, Any] = model.__dict__
        return values if self._plain else {name: values[_field_name(name)] for name in self.names}

    def _dump(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            return {name: json_value(value, name) for name, value in values.items()}
        except TypeError as error:
            raise InvalidInput(str(error)) from None

    @property
    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, with the descriptions of the docstring."""
        schema: dict[str, Any] = self._model.model_json_schema()
        schema.pop("title", None)
        texts = parameter_docs(self._function)
        for name, part in schema.get("properties", {}).items():
            part.pop("title", None)
            if name in texts:
                part.setdefault("description", texts[name])
        return schema

    def _explain(self, error: Any) -> str:
        said = []
        for problem in error.errors():
            where = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                said.append(f"unknown argument {where!r}")
            elif problem["type"] == "missing":
                said.append(f"missing argument {where!r}")
            else:
                said.append(f"{where}: {problem['msg']}")
        return f"{'; '.join(said)}. The arguments are: {', '.join(self.names) or 'none'}"


def presentable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that may be anything, as an event can carry them."""
    shown: dict[str, Any] = {}
    for name, value in arguments.items():
        try:
            shown[str(name)] = json_value(value, str(name))
        except TypeError:
            shown[str(name)] = f"<{type(value).__name__}>"
    return shown


def _field_name(name: str) -> str:
    """Pydantic takes no field that starts with an underscore, or that hides one of its own names."""
    return (
        f"field{name}"
        if name.startswith("_") or name in ("copy", "json", "schema", "dict", "validate", "construct", "model_config")
        else name
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ValueError(
            f"the annotations of {getattr(function, '__qualname__', function)!r} can't be resolved: {error}; "
            "import the name at module level, outside TYPE_CHECKING"
        ) from None


def parameter_docs(function: Callable[..., Any]) -> dict[str, str]:
    """The descriptions of parameters, from the docstring."""
    from docstring_parser import parse

    parsed = parse(inspect.getdoc(function) or "")
    return {p.arg_name: p.description for p in parsed.params if p.description}


def description_of(function: Callable[..., Any]) -> str:
    """What the docstring says before it comes to parameters."""
    text = inspect.getdoc(function)
    if not text:
        return ""
    from docstring_parser import parse

    return parse(text).description or ""


class Codec:
    """Values of one annotated type, read back from JSON as that type."""

    def __init__(self, annotation: Any) -> None:
        from pydantic import TypeAdapter

        self._adapter: Any = TypeAdapter(annotation)

    def load(self, value: Any) -> Any:
        """The typed value of what `dump` gave, or of an answer; raises `pydantic.ValidationError`.

        Fields of models go by their names in the one, and by their aliases in the other.
        """
        from pydantic_core import to_json

        return self._adapter.validate_json(to_json(value), by_name=True, by_alias=True)

    def load_text(self, text: str) -> Any:
        """The typed value of a JSON text; raises `pydantic.ValidationError`, a `ValueError`."""
        return self._adapter.validate_json(text)

    def dump(self, value: Any) -> Any:
        """The value as JSON, by its type; raises `TypeError`."""
        return json_value(self._adapter.dump_python(value, mode="json", warnings="error"), "the result")

    @property
    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self._adapter.json_schema()
        return schema


def codec_of(annotation: Any) -> Codec:
    """The codec of a type; made once for each type that can be a key."""
    try:
        return _cached_codec(annotation)
    except TypeError:
        return Codec(annotation)


_cached_codec = lru_cache(maxsize=512)(Codec)


@lru_cache(maxsize=1024)
def return_codec(function: Callable[..., Any]) -> Codec | None:
    """How a function's result is read back from its record, or `None` where JSON itself is what it returns."""
    function = inspect.unwrap(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    try:
        annotation = get_type_hints(function, include_extras=True).get("return", Any)
    except NameError:
        return None
    if annotation is Any or annotation in _SCALARS or annotation in (dict, list, object):
        return None
    from ..types.message import Message

    if annotation is Message:
        return None
    return codec_of(annotation)
