"""Immutable objects with named fields, as quick to make as a dict and as easy to dump."""

from __future__ import annotations

from functools import cache
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform, get_type_hints

T = TypeVar("T")


def constant(value: T, *, init: Literal[False] = False) -> T:
    """A field that is the same in every value of its class, and no argument of it."""
    return value


@dataclass_transform(kw_only_default=False, frozen_default=True, field_specifiers=(constant,))
class Value:
    """What events, messages and contents have in common.

    Fields are the annotations of the class, in order; JSON keeps that order. Two values are equal when their class and
    all their fields are. They can be fields of pydantic models and FastAPI response models.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    #: Every field in order, with its default if it has one.
    _blank: ClassVar[dict[str, Any]] = {}
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [name for name, hint in get_annotations(cls).items() if "ClassVar" not in str(hint)]
        cls._fields = (
            *(f for f in cls._fields if f not in own or f == "type"),
            *(f for f in own if f not in cls._fields),
        )
        cls._defaults = {**cls._defaults, **{f: cls.__dict__[f] for f in own if f in cls.__dict__}}
        cls._blank = {f: cls._defaults.get(f) for f in cls._fields}
        cls._required = frozenset(cls._fields) - cls._defaults.keys()

    def __init__(self, *args: Any, **fields: Any) -> None:
        cls = type(self)
        if args or "type" in fields:
            fields = cls._named(args, fields)
        values = {**cls._blank, **fields}
        if len(values) != len(cls._blank) or not cls._required <= fields.keys():
            raise cls._misfit(fields)
        self.__dict__.update(values)

    @classmethod
    def _named(cls, args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        """Positional arguments by name; `type` is no argument, and where it is given it must be the class's own."""
        names = [name for name in cls._fields if name != "type"]
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__} takes {len(names)} arguments at most: {', '.join(names)}")
        if fields.get("type", cls._defaults.get("type")) != cls._defaults.get("type"):
            raise TypeError(f"{cls.__name__}: 'type' is {cls._defaults['type']!r} and can't be another")
        return {**dict(zip(names, args, strict=False)), **fields}

    @classmethod
    def _misfit(cls, fields: dict[str, Any]) -> TypeError:
        unknown = sorted(fields.keys() - set(cls._fields))
        missing = [name for name in cls._fields if name not in fields and name not in cls._defaults]
        what = f"does not know {', '.join(unknown)}" if unknown else f"lacks {', '.join(missing)}"
        return TypeError(f"{cls.__name__} {what}; its fields are {', '.join(cls._fields)}")

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        """The quick way in for our own code: `fields` holds every field, in order, and belongs to the value now."""
        value = cls.__new__(cls)
        object.__setattr__(value, "__dict__", fields)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable; make another with .model_copy(update={{{name!r}: ...}})"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.model_dump_json()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items() if k != 'type')})"

    def model_copy(self, *, update: dict[str, Any] | None = None) -> Self:
        """The same value with some fields changed."""
        return type(self)(**{**self.__dict__, **(update or {})})

    def model_dump(self, *, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """A dict of the fields; with `mode="json"` it holds nothing but JSON."""
        if mode == "json":
            from pydantic_core import to_jsonable_python

            return to_jsonable_python(self.__dict__, fallback=fields_of)  # type: ignore[no-any-return]
        return {k: _plain(v) for k, v in self.__dict__.items()}

    def model_dump_json(self) -> str:
        """The fields as one line of JSON, in the order they are declared."""
        from pydantic_core import to_json

        return to_json(self.__dict__, fallback=fields_of).decode()

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """A value from a dict of its fields (or from itself); raises `pydantic.ValidationError`."""
        if isinstance(data, cls):
            return data
        return cls(**dict(_twin(cls).model_validate(data)))  # type: ignore[arg-type]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.model_validate, serialization=core_schema.plain_serializer_function_ser_schema(_as_json)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return handler(_twin(cls).__pydantic_core_schema__)  # type: ignore[arg-type]


def fields_of(value: Any) -> Any:
    """The JSON serialisers' way into a `Value` (and into a pydantic model inside one)."""
    if isinstance(value, Value):
        return value.__dict__
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def _as_json(value: Value) -> dict[str, Any]:
    return value.model_dump(mode="json")


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return value.model_dump()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


@cache
def _twin(cls: type[Value]) -> Any:
    """A pydantic model with the same fields: it validates and describes; it is made when first needed."""
    from pydantic import ConfigDict, create_model

    hints = get_type_hints(cls)
    fields: dict[str, Any] = {f: (hints[f], cls._defaults.get(f, ...)) for f in cls._fields}
    return create_model(cls.__name__, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True), **fields)
