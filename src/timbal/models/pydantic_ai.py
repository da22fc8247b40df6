"""Asks providers through pydantic-ai: our messages as theirs, their streams, replies and errors as ours.

The only module that knows that library. It is loaded at the first use of a model (`models.loading`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, assert_never
from uuid import uuid4

from pydantic_ai import exceptions
from pydantic_ai import messages as theirs
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters, create_async_httpx2_client
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from ..core.ids import canonical_json
from ..errors import ModelError
from ..ports import ModelRequest, Reply
from ..types.content import Content, FileContent, TextContent, ThinkingContent, ToolResultContent, ToolUseContent
from ..types.json_value import json_value
from ..types.message import Message
from .endpoint import Endpoint
from .per_loop import PerLoop
from .retries import TryAgain
from .settings import checked

Emit = Callable[[dict[str, Any]], None]

#: The only argument of a tool call whose arguments were no JSON object: the tool refuses it, and the model reads why.
INVALID_JSON = "INVALID_JSON"


async def ask(endpoint: Endpoint, request: ModelRequest, settings: dict[str, Any], emit: Emit) -> Reply:
    """One attempt: the whole reply, what streams in told on the way. Raises `ModelError`, or `TryAgain`."""
    with _translated(endpoint, settings["timeout"]):
        model = await _model(endpoint)
        stream_of = model_request_stream(
            model,
            _messages(request.messages, model.system),
            model_settings=checked(_settings_type(endpoint), _defaults(endpoint) | settings),
            model_request_parameters=_parameters(request, model),
        )
        async with stream_of as stream:
            telling = _Telling(emit, request.messages)
            async for event in stream:
                telling.tell(event)
            response = stream.get()
        if response.state != "complete" or not _reason(response):
            raise _Incomplete
        return Reply(_message(response, telling.tool_ids), _usage(response.usage))


class _Incomplete(Exception):
    """A stream ended as if all were well, without what marks the end of an answer."""


# -- connections -------------------------------------------------------------------------------------------------------


class _Connections:
    """What belongs to one event loop: an HTTP client, and the models that were asked through it."""

    def __init__(self) -> None:
        self.client = create_async_httpx2_client()
        self.models: dict[Endpoint, ProviderModel[Any]] = {}

    async def aclose(self) -> None:
        await self.client.aclose()


_connections = PerLoop(_Connections)


async def _model(endpoint: Endpoint) -> ProviderModel[Any]:
    connections = await _connections.get()
    model = connections.models.get(endpoint)
    if model is None:
        model = connections.models[endpoint] = _make_model(endpoint, connections.client)
    return model


def _make_model(endpoint: Endpoint, client: Any) -> ProviderModel[Any]:
    where: dict[str, Any] = {"base_url": endpoint.base_url, "api_key": endpoint.api_key, "http_client": client}
    match endpoint.api:
        case "responses":
            from pydantic_ai.models.openai import OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIResponsesModel(endpoint.model, provider=OpenAIProvider(**where))
        case "chat":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.profiles.openai import OpenAIModelProfile, openai_model_profile
            from pydantic_ai.providers.openai import OpenAIProvider
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
            if endpoint.base_url is None:
                return OpenAIChatModel(endpoint.model, provider=OpenAIProvider(**where), profile=profile)
            openai_own = bool(openai_model_profile(endpoint.model).get("openai_supports_reasoning"))
            profile["openai_chat_supports_max_completion_tokens"] = openai_own
            profile["openai_supports_strict_tool_definition"] = False
            profile["native_output_requires_schema_in_instructions"] = True
            compatible = OpenAICompatibleProvider("openai-compatible", **where)
            return OpenAIChatModel(endpoint.model, provider=compatible, profile=profile)
        case "messages":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(endpoint.model, provider=AnthropicProvider(**where))
        case "generate":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(endpoint.model, provider=GoogleProvider(**where))
        case _:
            assert_never(endpoint.api)


def _settings_type(endpoint: Endpoint) -> type:
    match endpoint.api:
        case "responses":
            from pydantic_ai.models.openai import OpenAIResponsesModelSettings

            return OpenAIResponsesModelSettings
        case "chat":
            from pydantic_ai.models.openai import OpenAIChatModelSettings

            return OpenAIChatModelSettings
        case "messages":
            from pydantic_ai.models.anthropic import AnthropicModelSettings

            return AnthropicModelSettings
        case "generate":
            from pydantic_ai.models.google import GoogleModelSettings

            return GoogleModelSettings
        case _:
            assert_never(endpoint.api)


def _defaults(endpoint: Endpoint) -> dict[str, Any]:
    # The transcript is ours: reasoning comes back to OpenAI encrypted, and nothing of it need be kept there.
    return {"openai_store": False} if endpoint.api == "responses" else {}


# -- what we send ------------------------------------------------------------------------------------------------------


def _parameters(request: ModelRequest, model: ProviderModel[Any]) -> ModelRequestParameters:
    """System prompt, tools and the form of the answer."""
    instructions = [request.system_prompt] if request.system_prompt else []
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, parameters_json_schema=tool.input_schema, description=tool.description or None
            )
            for tool in request.tools
        ]
    )
    if (schema := request.output_schema) is not None:
        if _takes_schema(model, schema, bool(request.tools)):
            parameters.output_mode = "native"
            parameters.output_object = OutputObjectDefinition(schema, name=_schema_name(schema))
        else:
            instructions.append(
                f"When you give the final answer, give only JSON that fits this JSON Schema:\n{canonical_json(schema)}"
            )
    parameters.instruction_parts = [theirs.InstructionPart(text) for text in instructions]
    return parameters


def _takes_schema(model: ProviderModel[Any], schema: dict[str, Any], with_tools: bool) -> bool:
    """Whether the provider itself holds the model to this schema: they all want an object at its root."""
    profile: dict[str, Any] = {**model.profile}
    if schema.get("type") != "object" or not profile.get("supports_json_schema_output"):
        return False
    return not with_tools or model.system != "google" or bool(profile.get("google_supports_tool_combination"))


def _schema_name(schema: dict[str, Any]) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "answer")))[:64]


def _messages(messages: Any, system: str) -> list[theirs.ModelMessage]:
    """A transcript for the provider that pydantic-ai calls `system`: replies and what is between them, in turn.

    What providers refuse is left out or named: blank text, replies without content, thinking of another provider.
    """
    out: list[theirs.ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            said = list(_reply_parts(message, system))
            names.update((part.tool_call_id, part.tool_name) for part in said if isinstance(part, theirs.ToolCallPart))
            if out and isinstance(out[-1], theirs.ModelResponse):
                out[-1].parts = [*out[-1].parts, *said]
            elif said:
                out.append(theirs.ModelResponse(said, provider_name=system))
        else:
            asked = list(_request_parts(message, names, system))
            if out and isinstance(out[-1], theirs.ModelRequest):
                out[-1].parts = [*out[-1].parts, *asked]
            else:
                out.append(theirs.ModelRequest(asked))
    return out


def _reply_parts(message: Message, system: str) -> Iterator[theirs.ModelResponsePart]:
    for part in message.content:
        match part:
            case TextContent(text=text):
                if text.strip():
                    yield theirs.TextPart(text)
            case ThinkingContent():
                if (thought := _thinking_part(part, system)) is not None:
                    yield thought
            case ToolUseContent():
                yield theirs.ToolCallPart(part.name, part.input, _tool_id(part.id, system))
            case FileContent(data=str(data)):
                binary = theirs.BinaryContent(base64.b64decode(data), media_type=part.media_type)
                yield theirs.FilePart(theirs.BinaryContent.narrow_type(binary))
            case FileContent(url=url):
                yield theirs.TextPart(f"({part.media_type} at {url})")
            case ToolResultContent():
                raise ModelError("a message of the assistant holds a tool_result; these belong into a tool message")
            case _:
                assert_never(part)


def _request_parts(message: Message, names: dict[str, str], system: str) -> Iterator[theirs.ModelRequestPart]:
    if message.role == "system":
        yield theirs.SystemPromptPart(message.collect_text())
        return
    user: list[theirs.UserContent] = []
    for part in message.content:
        match part:
            case ToolResultContent():
                id = _tool_id(part.id, system)
                yield theirs.ToolReturnPart(names.get(id, "unknown"), _result(part), id)
            case TextContent() | FileContent():
                user.extend(_user_content(part))
            case _:
                raise ModelError(f"a message of the {message.role} holds {part.type}, which only an assistant's can")
    if user:
        yield theirs.UserPromptPart(user[0] if len(user) == 1 and isinstance(user[0], str) else user)
    elif message.role == "user" and not any(isinstance(part, ToolResultContent) for part in message.content):
        yield theirs.UserPromptPart("(an empty message)")


def _result(part: ToolResultContent) -> Any:
    if isinstance(part.content, str):
        return part.content if part.content.strip() else "(no output)"
    return [content for item in part.content for content in _user_content(item)] or "(no output)"


def _user_content(part: TextContent | FileContent) -> Iterator[Any]:
    if isinstance(part, TextContent):
        if part.text.strip():
            yield part.text
    elif part.data is not None:
        yield theirs.BinaryContent(base64.b64decode(part.data), media_type=part.media_type)
    else:
        kinds = {"image": theirs.ImageUrl, "audio": theirs.AudioUrl, "video": theirs.VideoUrl}
        kind: Any = kinds.get(part.media_type.partition("/")[0], theirs.DocumentUrl)
        yield kind(part.url, media_type=part.media_type)


def _tool_id(id: str, system: str) -> str:
    """The id of a tool call as the provider takes it: another one may have given it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", id) if system == "anthropic" else id


# -- thinking ----------------------------------------------------------------------------------------------------------


class _Seal(NamedTuple):
    """What a provider wants back with its thinking; in our format it is the signature `<provider>:<id>:<signature>`."""

    provider: str
    id: str | None
    signature: str | None

    def __str__(self) -> str:
        return f"{self.provider}:{self.id or ''}:{self.signature or ''}"

    @classmethod
    def read(cls, text: str | None, system: str) -> _Seal | None:
        """The seal of a stored signature; one from elsewhere has no names in it, and is taken for this provider's."""
        if not text:
            return None
        provider, *rest = text.split(":", 2)
        return cls(provider, rest[0] or None, rest[1] or None) if len(rest) == 2 else cls(system, None, text)


def _thinking_part(part: ThinkingContent, system: str) -> theirs.ThinkingPart | None:
    """The thinking for the provider it came from, and None for others: they refuse what they can't verify."""
    seal = _Seal.read(part.signature, system)
    if seal is None or seal.provider != system:
        return None
    thought = theirs.ThinkingPart(part.thinking, id=seal.id, signature=seal.signature, provider_name=system)
    if system == "google" and part.thinking:  # Gemini wants a signature in the part that it came with
        thought.signature, thought.provider_details = None, {"thought_signature": seal.signature}
    return thought


def _thinking_content(part: theirs.ThinkingPart) -> ThinkingContent:
    signature = part.signature or (part.provider_details or {}).get("thought_signature")
    seal = _Seal(part.provider_name or "", part.id, signature)
    return ThinkingContent(_text(part.content), str(seal) if part.provider_name and (part.id or signature) else None)


# -- what comes back ---------------------------------------------------------------------------------------------------


class _Telling:
    """Tells a stream as delta items. Each block has an id of its own, a tool call's is that of the call."""

    def __init__(self, emit: Emit, asked: Any) -> None:
        self._emit = emit
        self._ids: dict[int, str] = {}
        self._taken = {part.id for message in asked for part in message.content if isinstance(part, ToolUseContent)}
        #: The ids of the tool calls by their place; a fresh one where the provider repeats one of this conversation.
        self.tool_ids: dict[int, str] = {}

    def tell(self, event: theirs.ModelResponseStreamEvent) -> None:
        match event:
            case theirs.PartStartEvent(index=index, part=part):
                self._start(index, part)
            case theirs.PartDeltaEvent(index=index, delta=delta):
                self._go_on(index, delta)
            case theirs.PartEndEvent(index=index):
                if index in self._ids:
                    self._emit({"id": self._ids[index], "type": "content_block_stop"})
            case _:
                pass

    def _start(self, index: int, part: theirs.ModelResponsePart) -> None:
        match part:
            case theirs.ToolCallPart():
                id = part.tool_call_id if part.tool_call_id not in self._taken else f"call_{uuid4().hex}"
                self._taken.add(id)
                self._ids[index] = self.tool_ids[index] = id
                given = part.args if isinstance(part.args, dict) else {}
                self._emit({"id": id, "type": "tool_use", "name": part.tool_name, "input": given})
                if isinstance(part.args, str):
                    self._piece(index, "tool_use_delta", "input_delta", part.args)
            case theirs.TextPart(content=text):
                self._ids.pop(index, None)
                self._piece(index, "text_delta", "text_delta", text)
            case theirs.ThinkingPart(content=text):
                self._ids.pop(index, None)
                self._piece(index, "thinking_delta", "thinking_delta", text)
            case _:
                pass

    def _go_on(self, index: int, delta: theirs.ModelResponsePartDelta) -> None:
        match delta:
            case theirs.TextPartDelta(content_delta=text):
                self._piece(index, "text_delta", "text_delta", text)
            case theirs.ThinkingPartDelta(content_delta=thought):
                self._piece(index, "thinking_delta", "thinking_delta", thought)
            case theirs.ToolCallPartDelta(args_delta=arguments):
                given = canonical_json(arguments) if isinstance(arguments, dict) else arguments
                self._piece(index, "tool_use_delta", "input_delta", given)
            case _:
                pass

    def _piece(self, index: int, type: str, key: str, text: str | None) -> None:
        if text:
            id = self._ids.setdefault(index, uuid4().hex)
            self._emit({"id": id, "type": type, key: _text(text)})


def _message(response: theirs.ModelResponse, tool_ids: dict[int, str]) -> Message:
    content: list[Content] = []
    for index, part in enumerate(response.parts):
        signature = (part.provider_details or {}).get("thought_signature")
        if signature and not isinstance(part, theirs.ThinkingPart):  # Gemini signs any part; it goes before the part
            content.append(ThinkingContent("", str(_Seal(part.provider_name or "google", None, signature))))
        match part:
            case theirs.TextPart():
                if part.content:
                    content.append(TextContent(_text(part.content)))
            case theirs.ThinkingPart():
                content.append(_thinking_content(part))
            case theirs.ToolCallPart():
                content.append(ToolUseContent(tool_ids[index], part.tool_name, _arguments(part)))
            case theirs.FilePart(content=file):
                content.append(FileContent(file.media_type, data=base64.b64encode(file.data).decode()))
            case _:
                pass
    return Message("assistant", content, _reason(response))


def _reason(response: theirs.ModelResponse) -> str | None:
    """Why the model stopped, in the provider's own word where there is one; None in an answer that was cut off."""
    return (response.provider_details or {}).get("finish_reason") or response.finish_reason


def _arguments(part: theirs.ToolCallPart) -> dict[str, Any]:
    try:
        arguments: dict[str, Any] = json_value(part.args_as_dict(raise_if_invalid=True))
    except (ValueError, AssertionError, TypeError):
        return {INVALID_JSON: _text(str(part.args))}
    return arguments


def _text(text: str) -> str:
    """Text in which halves of surrogate pairs, escaped one by one on the wire, are one character again."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage(usage: Any) -> dict[str, int]:
    """Tokens in and out, and what else was counted: `cache_read_tokens`, `output_reasoning_tokens` and the like."""
    counted = {name: n for name, n in vars(usage).items() if isinstance(n, int) and n and name.endswith("_tokens")}
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, **counted}


# -- errors ------------------------------------------------------------------------------------------------------------


@contextmanager
def _translated(endpoint: Endpoint, timeout: Any) -> Iterator[None]:
    """The library's errors as ours: what happened and what to do about it. No key gets into a text."""
    try:
        yield
    except ModelError:
        raise
    except _Incomplete as error:
        raise TryAgain("the answer ended without a mark of its end") from error
    except exceptions.ModelTimeoutError as error:
        raise TryAgain(f"no word for {timeout} seconds; Model(..., timeout=) is how long to wait") from error
    except (exceptions.AgentRunError, exceptions.UserError) as error:
        shown = None if endpoint.api_key in str(error) else error  # a cause ends up in tracebacks
        raise _ours(error, endpoint) from shown


def _ours(error: exceptions.AgentRunError | exceptions.UserError, endpoint: Endpoint) -> ModelError:
    said = _said(error, endpoint)
    match error:
        case exceptions.ModelRateLimitError():
            return TryAgain(f"too many requests (429): {said}", error.retry_after)
        case exceptions.ModelUnavailableError() | exceptions.ModelServerError():
            return TryAgain(f"the provider failed ({_status(error)}): {said}", error.retry_after)
        case exceptions.ModelConnectionError():
            return TryAgain(f"no connection to {_place(endpoint)}: {said}")
        case exceptions.ModelAuthenticationError():
            what = f"the provider refused the API key ({_status(error)}); check it, and that it may use this model"
        case exceptions.ModelNotFoundError():
            what = f"there is no such model at {_place(endpoint)} ({_status(error)}); check name and base URL: {said}"
        case exceptions.ModelQuotaExceededError():
            what = f"the account's quota or credit is used up ({_status(error)}): {said}"
        case exceptions.ModelContextWindowExceededError():
            what = f"the conversation is longer than the model can read: {said}"
        case exceptions.ModelHTTPError():
            what = f"the provider refused the request ({error.status_code}): {said}"
        case exceptions.ModelAPIError() | exceptions.UnexpectedModelBehavior():
            what = f"what came from {_place(endpoint)} is no answer of its API; check the base URL: {said}"
        case _:
            what = said
    return ModelError(what)


def _said(error: Exception, endpoint: Endpoint) -> str:
    """What the provider said, in short."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        body = body.get("error", body)
    if isinstance(body, dict):
        body = body.get("message")
    text = " ".join(str(body or getattr(error, "message", "") or error).split())
    return (text[:300] + "..." if len(text) > 300 else text).replace(endpoint.api_key, "***")


def _status(error: Exception) -> str:
    return str(getattr(error, "status_code", None) or getattr(error, "provider_error_type", None) or "in the stream")


def _place(endpoint: Endpoint) -> str:
    return endpoint.base_url or f"{endpoint.provider}'s own API"
