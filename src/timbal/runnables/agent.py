"""A model that works with tools: its loop knows nothing of pausing, since every call in it is recorded."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, Unpack

from ..core.facts import Noted, Returned
from ..core.ids import child, model_segment, tool_segment
from ..core.outputs import REPLY
from ..core.transcript import dump_prompt, input_messages, reply_at, result_content, tool_uses
from ..errors import ModelError
from ..ports import ModelRequest, Reply
from ..runtime.call import CallFailed, Outcome, call, failed, tell_output, tell_start
from ..runtime.eager import start
from ..runtime.frame import Frame
from ..runtime.gate import GateOptions, Policy, gate_of
from ..runtime.run import output_event
from ..runtime.schema import InvalidInput, codec_of
from ..state import Pause, place
from ..types.content import ToolResultContent, ToolUseContent
from ..types.events import OutputEvent
from ..types.message import Message, dump_message
from ..types.run_status import success
from .base import OnNewMessage, Runnable
from .tool import as_tool

if TYPE_CHECKING:
    from ..ports import Model, Store
    from ..runtime.handle import RunHandle
    from ..runtime.run import Run

Out = TypeVar("Out")


class Agent(Runnable, Generic[Out]):
    """A model, a system prompt and tools; a run goes on until the model has answered.

    `model`: `"<provider>/<name>"`, a `Model`, or a `timbal.testing.TestModel`. `tools`: functions, `Tool`s, agents.
    `system_prompt`: a str, or a sync or async callable that is asked at each turn. `max_iter`: the most model calls of
    a turn. `output_model`: what the final answer is validated as. `on_new_message`: what a new message does to a paused
    run. `examples`: prompts that a front end offers to somebody who is new. `approvals={"github_*": True}` puts gates
    before tools, by the patterns of their names, with True or a policy; `requires_approval` and the `approval_*`
    parameters put one before the agent itself (see `GateOptions`). Contract sections 5 and 9.

    Raises `ValueError` for a name that can't be and for two tools of one name.
    """

    kind: ClassVar[str] = "Agent"

    def __init__(
        self,
        name: str,
        model: Model | str,
        tools: Iterable[Any] = (),
        system_prompt: str | Callable[[], Any] | None = None,
        max_iter: int = 10,
        output_model: type[Out] | None = None,
        model_params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        store: Store | str | None = None,
        description: str | None = None,
        default_params: Mapping[str, Any] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        approvals: Mapping[str, Policy] | None = None,
        on_new_message: OnNewMessage | None = None,
        examples: Sequence[str] = (),
        **gate: Unpack[GateOptions],
    ) -> None:
        super().__init__(name, description, timeout, default_params, pre_hook, post_hook, store)
        if max_iter < 1:
            raise ValueError(f"Agent {name!r}: max_iter is at least 1, not {max_iter!r}")
        if on_new_message not in (None, "refuse", "supersede"):
            raise ValueError(f"Agent {name!r}: on_new_message is 'refuse' or 'supersede', not {on_new_message!r}")
        if isinstance(examples, str) or not all(isinstance(example, str) for example in examples):
            raise ValueError(f"Agent {name!r}: examples is a list of prompts, each a str")
        if unknown := self._filled - {"prompt"}:
            raise ValueError(f"Agent {name!r}: default_params has {sorted(unknown)}; an agent's input is prompt")
        self.model = _model(model)
        self.tools: list[Any] = [as_tool(tool) for tool in tools]
        self._by_name: dict[str, Any] = {}
        for tool in self.tools:
            if tool.name in self._by_name:
                raise ValueError(f"Agent {name!r} has two tools named {tool.name!r}; give one another name")
            self._by_name[tool.name] = tool
        if approvals:
            self._put_gates(approvals)
        if gate:
            self._gate = gate_of(f"Agent {name!r}", self._input_names, gate)
        #: Tools of whose input something is hidden: from the events of the model that asks for them, too.
        self._redacting = {t.name: t._gate for t in self.tools if t._gate is not None and t._gate.redacts}
        self._system_prompt = system_prompt
        self.max_iter = max_iter
        self.output_model = output_model
        self._codec = codec_of(output_model) if output_model is not None else None
        self._model_params = dict(model_params or {})
        self.on_new_message = on_new_message
        self.examples = tuple(examples)

    def _put_gates(self, approvals: Mapping[str, Policy]) -> None:
        """Gates before tools that others wrote: in this agent only, and beside those that they have."""
        for pattern, policy in approvals.items():
            what = f"approvals[{pattern!r}]"
            if policy is False:
                raise ValueError(f"Agent {self.name!r}: {what} is False; leave it out, a gate can't be taken away here")
            matching = [name for name in self._by_name if fnmatchcase(name, pattern)]
            if not matching:
                raise ValueError(f"Agent {self.name!r}: {what} matches none of its tools, so it would guard nothing")
            for name in matching:
                self._by_name[name] = self._by_name[name]._and_if(policy, what)
        self.tools = list(self._by_name.values())

    def __call__(self, prompt: Any = None, **params: Any) -> RunHandle:
        """A run with `prompt` (a str, a Message or a list of content) or `messages` (a transcript that ends with the
        user). Also: `parent_id`, `resume`, `run_id`, `labels`, `by` (contract section 2)."""
        if prompt is not None:
            params["prompt"] = prompt
        return self._call(params)

    def run_sync(self, prompt: Any = None, **params: Any) -> OutputEvent:
        """Run to the end or the pause, for code that is not async."""
        return self._run_sync(self(prompt, **params))

    def preload(self) -> None:
        """Begin to load what its model needs, and the models of its agents, in the background."""
        for agent in (self, *(tool for tool in self.tools if isinstance(tool, Agent))):
            load = getattr(agent.model, "preload", None)  # a model of somebody's own need not have it
            if load is not None:
                load()

    @property
    def _input_names(self) -> Sequence[str]:
        return ("prompt", "messages")

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input, as another agent's model is given it."""
        return {
            "type": "object",
            "properties": {"prompt": {"type": "string"}},
            "required": ["prompt"],
            "additionalProperties": False,
        }

    # -- input and output --------------------------------------------------------------------------------------------

    def _prepare(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        if self._defaults:
            arguments = {**({} if "messages" in arguments else self._fill(arguments)), **arguments}
        stored = _stored_input(arguments)
        return stored, stored

    def _reread(self, recorded: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        stored = _stored_input(recorded)
        return stored, stored

    def _restore(self, stored: dict[str, Any]) -> dict[str, Any]:
        return stored

    def _conclude(self, frame: Frame, value: Any) -> Outcome:
        outcome: Outcome = value
        return outcome

    def _revive(self, value: Any, form: str | None) -> Any:
        if self._codec is None or not isinstance(value, Message):
            return value
        return self._codec.load_text(_bare_json(value.collect_text()))

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def _handle(self, frame: Frame, values: dict[str, Any]) -> Any:
        if self._pre_hook is not None:
            await self._hook(self._pre_hook, "pre_hook", input=self._for_hooks(frame, values))
        final = await self._loop(frame, values)
        if self._post_hook is not None:
            await self._hook(self._post_hook, "post_hook", input=self._for_hooks(frame, values), output=final.output)
        return final

    async def _loop(self, frame: Frame, values: dict[str, Any]) -> Outcome:
        run = frame.run
        messages = [*run.history, *input_messages(values)] if frame.parent is None else input_messages(values)
        system_prompt: str | None = None
        started = False
        allowance = self.max_iter + (run.ledger.allowance_from if frame.parent is None else 0)
        for turn in count():
            reply = reply_at(run.ledger, frame.key, turn)
            if reply is None:
                if frame.timed_out():
                    raise CallFailed("timeout", f"{self.name} has run out of time", "TimeoutError")
                if turn >= allowance:
                    raise CallFailed(
                        "max_iter", f"{self.name} has asked its model {self.max_iter} times and has no answer yet"
                    )
                if not started:
                    system_prompt, started = await self._ask_system_prompt(), True
                reply = await self._ask_model(frame, turn, messages, system_prompt)
            messages.append(reply)
            uses = tool_uses(reply)
            if uses:
                messages.append(
                    Message._of({"role": "tool", "content": await self._use(frame, turn, uses), "stop_reason": None})
                )
                continue
            final = self._finish(frame, turn, reply)
            if isinstance(final, Outcome):
                return final
            messages.append(Message("user", final))
        raise AssertionError("unreachable")

    def _finish(self, frame: Frame, turn: int, reply: Message) -> Outcome | str:
        """The answer; or, where it is not what was asked for, what to tell the model."""
        if self._codec is None:
            return _final(reply, turn, reply)
        key = child(frame.key, f"n{turn}")
        note = frame.run.ledger.notes.get(key)
        if note is not None:
            return note
        try:
            value = self._codec.load_text(_bare_json(reply.collect_text()))
        except ValueError as error:
            note = (
                f"That is not the answer in the form that was asked for. Give only JSON that fits the schema. {error}"
            )
            frame.run.record(Noted(key, note))
            return note
        return _final(value, turn, reply)

    async def _ask_system_prompt(self) -> str | None:
        prompt = self._system_prompt
        if prompt is None or isinstance(prompt, str):
            return prompt
        with place(f"the system prompt of {self.name}"):
            text = prompt()
            return str(await text if inspect.isawaitable(text) else text)

    # -- the model ---------------------------------------------------------------------------------------------------

    async def _ask_model(self, parent: Frame, turn: int, messages: list[Message], system_prompt: str | None) -> Message:
        """One call of the model, recorded with what comes next."""
        run, model = parent.run, self.model
        frame = Frame(
            run, child(parent.key, model_segment(turn)), f"{parent.path}.llm", "llm", "Tool", run.new_id(), parent
        )
        frame.tool_call_id = None
        frame.t0, frame.input = run.clock(), {"model": model.name}
        if turn and (work := run.commit()) is not None:
            await work
        tell_start(frame)
        request = ModelRequest(
            messages, system_prompt, self.tools, self._model_params, self._codec.json_schema if self._codec else None
        )
        try:
            reply = await model.complete(request, frame.delta if not self._redacting else self._redacting_delta(frame))
        except Exception as error:
            problem = (
                error if isinstance(error, ModelError) else ModelError(f"{model.name}: {type(error).__name__}: {error}")
            )
            outcome = failed(frame, problem, "model_error")
            tell_output(frame, outcome)
            raise CallFailed("model_error", str(problem), "ModelError") from error
        message = _with_fresh_ids(reply, messages, run.new_id)
        for what, n in reply.usage.items():
            frame.count(f"{model.name}:{what}", n)
        t1 = run.clock()
        run.record(
            Returned(frame.key, frame.call_id, "llm", "model", frame.t0, t1, dump_message(message), usage=frame.usage)
        )
        shown = message if not self._redacting else self._redacted(message)
        run.hold(frame.tell, output_event(frame, success(message.stop_reason), shown, None, t1, {}))
        return message

    def _redacted(self, message: Message) -> Message:
        """A reply as anybody may see it."""
        content = [
            part.model_copy(update={"input": self._redacting[part.name].redacted(part.input)})
            if isinstance(part, ToolUseContent) and part.name in self._redacting
            else part
            for part in message.content
        ]
        return Message(message.role, content, message.stop_reason)

    def _redacting_delta(self, frame: Frame) -> Callable[[dict[str, Any]], None]:
        """What a model streams, without the arguments of tools that hide some: pieces of JSON can't be redacted."""
        hidden: set[Any] = set()

        def tell(item: dict[str, Any]) -> None:
            if item["type"] == "tool_use" and item["name"] in self._redacting:
                hidden.add(item.get("id"))
                frame.delta({**item, "input": self._redacting[item["name"]].redacted(item["input"])})
            elif item["type"] != "tool_use_delta" or item.get("id") not in hidden:
                frame.delta(item)

        return tell

    # -- the tools ---------------------------------------------------------------------------------------------------

    async def _use(self, frame: Frame, turn: int, uses: list[ToolUseContent]) -> list[ToolResultContent]:
        """The results of a reply's tool calls, in their order; when one of them waits, so does the agent."""
        run = frame.run
        if (work := run.commit()) is not None:
            await work
        if len(uses) == 1:
            outcomes = [await self._use_one(frame, turn, 0, uses[0], alone=True)]
        else:
            outcomes = await _together(
                run, (self._use_one(frame, turn, i, use, alone=False) for i, use in enumerate(uses))
            )
        asked = [fact for outcome in outcomes for fact in outcome.asked]
        if asked:
            frame.asked = [*frame.asked, *asked]
            raise Pause
        return [
            result_content(use.id, run.ledger.outcomes[child(frame.key, tool_segment(turn, i))], run.ledger)
            for i, use in enumerate(uses)
        ]

    async def _use_one(self, frame: Frame, turn: int, index: int, use: ToolUseContent, *, alone: bool) -> Outcome:
        tool = self._by_name.get(use.name)
        missing = (
            ""
            if tool is not None
            else f"there is no tool {use.name!r}; the tools are: {', '.join(self._by_name) or 'none'}"
        )
        return await call(frame, tool, use, tool_segment(turn, index), missing, alone=alone)


def _final(value: Any, turn: int, reply: Message) -> Outcome:
    """An agent's answer: its record is that of the model's reply."""
    return Outcome(success(reply.stop_reason), value, model_segment(turn), REPLY)


async def _together(run: Run, calls: Iterable[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Calls side by side, each a strand of the run until it comes to rest; the last leaves its strand to the caller."""
    calls = list(calls)
    left = len(calls)
    run.busy += left - 1

    async def strand(call: Coroutine[Any, Any, Outcome]) -> Outcome:
        nonlocal left
        try:
            return await call
        finally:
            left -= 1
            run.busy -= left > 0

    tasks = [start(strand(call), "tool call") for call in calls]
    try:
        if left:
            await asyncio.gather(*tasks)
        return [task.result() for task in tasks]
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _stored_input(arguments: dict[str, Any]) -> dict[str, Any]:
    """An agent's input as JSON: `{"prompt": ...}` or `{"messages": [...]}`; raises `InvalidInput`."""
    unknown = arguments.keys() - {"prompt", "messages"}
    if unknown or len(arguments) != 1:
        what = (
            f"unknown argument {', '.join(map(repr, sorted(unknown)))}"
            if unknown
            else "give one of prompt and messages"
        )
        raise InvalidInput(f"{what}. The arguments are: prompt, or messages")
    try:
        if "prompt" in arguments:
            prompt = arguments["prompt"]
            if type(prompt) is str and prompt.isascii():
                return arguments
            return {"prompt": dump_prompt(Message.validate(prompt))}
        messages = [Message.validate(m) for m in arguments["messages"]]
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error)) from None
    if not messages or messages[-1].role != "user":
        raise InvalidInput("messages is a transcript that ends with a message of the user")
    return {"messages": [dump_message(m) for m in messages]}


def _with_fresh_ids(reply: Reply, messages: list[Message], new_id: Callable[[], str]) -> Message:
    """The reply, with ids of its own for tool calls whose id is missing or was used before (contract section 4)."""
    message = reply.message
    uses = tool_uses(message)
    if not uses:
        return message
    taken = {use.id for m in messages if m.role == "assistant" for use in tool_uses(m)}
    content: list[Any] = []
    changed = False
    for part in message.content:
        if isinstance(part, ToolUseContent):
            if not part.id or part.id in taken:
                part = part.model_copy(update={"id": f"call_{new_id()}"})
                changed = True
            taken.add(part.id)
        content.append(part)
    return Message(message.role, content, message.stop_reason) if changed else message


def _bare_json(text: str) -> str:
    """The JSON in a reply that may have a fence around it."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    return text


def _model(model: Any) -> Model:
    if isinstance(model, str):
        from ..models import Model as NamedModel

        return NamedModel(model)
    if not hasattr(model, "complete"):
        raise TypeError(
            f"Agent(model=) is a name such as 'openai/gpt-5', a Model or a TestModel, not {type(model).__name__}"
        )
    chosen: Model = model
    return chosen
