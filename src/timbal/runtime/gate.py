"""A gate as its author describes it: the `approval_*` parameters of a tool or an agent, checked, and what they say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, TypedDict

from ..core.gates import ANY_KEY, Verdict, text_or_none, verdict_of
from ..core.redaction import hide_all, hide_keys
from ..state import place
from ..types.json_value import json_value
from .questions import check_audience, milliseconds
from .schema import presentable

Policy = bool | Callable[..., Any]


class GateOptions(TypedDict, total=False):
    """The parameters of a gate (contract section 5).

    `requires_approval`: a bool, or a function of any of the handler's parameters that gives a bool, a dict or an
    `ApprovalPolicyDecision`. `approval_prompt` and `approval_description`: texts, or functions of such parameters.
    `approval_kind` and `approval_ui` (a dict, a pydantic model, or a function of the redacted input) tell a front end
    how to show it, `approval_preview` (a function of such parameters that changes nothing) what would happen.
    `approval_redact_keys` names arguments that nobody sees, at any depth; `approval_redactor(input)` gives what may be
    seen. `approval_audience`: who decides. After `approval_expires_in` seconds it is denied. With
    `approval_grantable=False` a decision is about one call only.
    """

    requires_approval: Policy
    approval_prompt: str | Callable[..., Any] | None
    approval_description: str | Callable[..., Any] | None
    approval_kind: str
    approval_ui: Any
    approval_preview: Callable[..., Any] | None
    approval_redact_keys: Iterable[str] | None
    approval_redactor: Callable[[dict[str, Any]], Any] | None
    approval_audience: list[str] | None
    approval_expires_in: float | timedelta | None
    approval_grantable: bool


class _Asked(NamedTuple):
    """One of the author's callables: the `names` of its parameters (`None`: all), and those that are `needed`."""

    function: Callable[..., Any]
    what: str
    names: list[str] | None
    needed: list[str]

    def given(self, values: dict[str, Any]) -> dict[str, Any]:
        """Those of the values that it takes; what it needs and is not there is None."""
        if self.names is None:
            return values
        return {name: values.get(name) for name in self.names if name in values or name in self.needed}


class Gate:
    """The gate of one tool or agent: `owner` is named in errors, `names` are the handler's parameters.

    Raises `TypeError` and `ValueError` for what can't be. Its methods run the author's callables, where nothing may
    pause; what these raise goes to the caller.
    """

    def __init__(self, owner: str, names: Sequence[str], options: Mapping[str, Any]) -> None:
        known = GateOptions.__optional_keys__
        if unknown := options.keys() - known:
            raise TypeError(f"{owner} does not know {', '.join(sorted(unknown))}")
        self._owner = owner
        self._names = list(names)
        get = options.get
        self._policies: tuple[bool | _Asked, ...] = ()
        self._add(get("requires_approval", False), "requires_approval")
        self._prompt = self._text(get("approval_prompt"), "approval_prompt")
        self._description = self._text(get("approval_description"), "approval_description")
        kind = get("approval_kind", "approval")
        if not isinstance(kind, str) or not kind:
            raise TypeError(f"{owner}: approval_kind is a name, not {kind!r}")
        self.kind: str = json_value(kind, "approval_kind")
        ui = get("approval_ui")
        self._ui = self._of_the_input(ui) if callable(ui) else _dict_or_none(ui, f"{owner}: approval_ui")
        self._preview = self._callable(get("approval_preview"), "approval_preview")
        self._keys = _keys(get("approval_redact_keys"), owner)
        self._redactor = get("approval_redactor")
        if self._redactor is not None and (not callable(self._redactor) or iscoroutinefunction(self._redactor)):
            raise TypeError(f"{owner}: approval_redactor is a plain function of the input, not {self._redactor!r}")
        self.audience = check_audience(get("approval_audience"), f"{owner}: approval_audience")
        expires_in = get("approval_expires_in")
        self.expires_in = None if expires_in is None else milliseconds(expires_in, f"{owner}: approval_expires_in")
        self.grantable: bool = get("approval_grantable", True)
        if type(self.grantable) is not bool:
            raise TypeError(f"{owner}: approval_grantable is True or False, not {self.grantable!r}")

    def and_if(self, policy: Policy, what: str) -> Gate:
        """The same gate, which also asks where this policy says so."""
        gate = Gate.__new__(Gate)
        vars(gate).update(vars(self))
        gate._add(policy, what)
        return gate

    def and_hides(self, redacts: Sequence[str]) -> Gate:
        """The same gate, which also hides what a record of an earlier one says (see `redacts`)."""
        if not (more := set(redacts).difference(self.redacts or ())):
            return self
        gate = Gate.__new__(Gate)
        vars(gate).update(vars(self))
        gate._keys = [*self._keys, *sorted(more - {ANY_KEY})]
        gate._redactor = hide_all if ANY_KEY in more else self._redactor
        return gate

    def _add(self, policy: Any, what: str) -> None:
        if type(policy) is not bool and not callable(policy):
            raise TypeError(f"{self._owner}: {what} is True, False or a function, not {policy!r}")
        self._policies = (*self._policies, policy if type(policy) is bool else self._asked(policy, what))

    def _text(self, text: Any, what: str) -> str | _Asked | None:
        return self._callable(text, what) if callable(text) else text_or_none(text, f"{self._owner}: {what}")

    def _callable(self, function: Any, what: str) -> _Asked | None:
        if function is not None and not callable(function):
            raise TypeError(f"{self._owner}: {what} is a function, not {function!r}")
        return None if function is None else self._asked(function, what)

    def _asked(self, function: Callable[..., Any], what: str) -> _Asked:
        names: list[str] | None = []
        needed: list[str] = []
        for name, parameter in _parameters(function, f"{self._owner}: {what}").items():
            optional = parameter.default is not parameter.empty
            if parameter.kind is parameter.VAR_KEYWORD:
                names = None
            elif parameter.kind is parameter.POSITIONAL_ONLY or not (
                name in self._names or optional or parameter.kind is parameter.VAR_POSITIONAL
            ):
                raise ValueError(
                    f"{self._owner}: {what} has the parameter {name!r}; it is called by name, with any of "
                    f"{', '.join(self._names) or 'no parameters'}, or all of them as **input"
                )
            elif name in self._names and names is not None:
                names.append(name)
                needed += [] if optional else [name]
        return _Asked(function, what, names, needed)

    def _of_the_input(self, function: Callable[..., Any]) -> _Asked:
        """A function of the whole input, where its one parameter is none of the handler's."""
        parameters = list(_parameters(function, f"{self._owner}: approval_ui").values())
        if len(parameters) != 1 or parameters[0].name in self._names or parameters[0].kind is parameters[0].VAR_KEYWORD:
            return self._asked(function, "approval_ui")
        return _Asked(lambda **shown: function(shown), "approval_ui", None, [])

    # -- what may be seen --------------------------------------------------------------------------------------------

    @property
    def redacts(self) -> list[str] | None:
        """What a record says of it, for whoever has only that."""
        return [*self._keys, *([ANY_KEY] if self._redactor is not None else ())] or None

    def redacted(self, input: Any) -> dict[str, Any]:
        """The input as anybody may see it; the names alone where that can't be told."""
        named = {**input} if isinstance(input, Mapping) else {}
        try:
            given: dict[str, Any] = json_value(named, "input")
            shown = given
            if self._redactor is not None:
                with place(f"the approval_redactor of {self._owner}"):
                    shown = json_value(self._redactor(json_value(given)), "the redacted input")
                if not isinstance(shown, dict):
                    return hide_all(given)
            hidden: dict[str, Any] = hide_keys(shown, self._keys) if self._keys else shown
        except KeyboardInterrupt:
            raise
        except BaseException:
            return hide_all(named) if self.redacts else presentable(named)
        return hidden

    # -- what it says of a call --------------------------------------------------------------------------------------

    async def judge(self, values: Callable[[], dict[str, Any]]) -> Verdict:
        """What the policies say; with several, one that asks is enough. `values` gives the input, new each time."""
        found = Verdict(False)
        for policy in self._policies:
            if policy is False:
                continue
            verdict = verdict_of(policy if policy is True else await self._call(policy, values()))
            if verdict.required and (not found.required or found.prompt is None):
                found = verdict
        return found

    async def prompt(self, verdict: Verdict, values: Callable[[], dict[str, Any]]) -> str | None:
        return verdict.prompt or await self._say(self._prompt, values)

    async def description(self, verdict: Verdict, values: Callable[[], dict[str, Any]]) -> str | None:
        return verdict.description or await self._say(self._description, values)

    async def _say(self, text: str | _Asked | None, values: Callable[[], dict[str, Any]]) -> str | None:
        return text_or_none(await self._call(text, values()), text.what) if isinstance(text, _Asked) else text

    async def preview(self, values: Callable[[], dict[str, Any]]) -> Any:
        if self._preview is None:
            return None
        return json_value(await self._call(self._preview, values()), "the preview")

    async def ui(self, shown: dict[str, Any]) -> dict[str, Any] | None:
        ui = self._ui
        if not isinstance(ui, _Asked):
            return ui
        return _dict_or_none(await self._call(ui, json_value(shown)), ui.what)

    async def _call(self, asked: _Asked, values: dict[str, Any]) -> Any:
        with place(f"the {asked.what} of {self._owner}"):
            said = asked.function(**asked.given(values))
            return await said if inspect.isawaitable(said) else said


def gate_of(owner: str, names: Sequence[str], options: Mapping[str, Any]) -> Gate | None:
    """The gate that these options make, or `None` where there are none."""
    gate = Gate(owner, names, options)
    return gate if any(value is not None and value is not False for value in options.values()) else None


def _parameters(function: Callable[..., Any], what: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except ValueError:
        raise ValueError(f"{what}: the parameters of {function!r} can't be told; wrap it in a lambda") from None


def _keys(given: Any, owner: str) -> list[str]:
    if given is None:
        return []
    keys = [] if isinstance(given, str) else list(given)
    if isinstance(given, str) or not all(isinstance(key, str) for key in keys):
        raise TypeError(f"{owner}: approval_redact_keys is a list of names, not {given!r}")
    return keys


def _dict_or_none(value: Any, what: str) -> dict[str, Any] | None:
    ui = json_value(value, what)
    if ui is not None and not isinstance(ui, dict):
        raise TypeError(f"{what} is a dict or a pydantic model, not {type(value).__name__}")
    return ui
