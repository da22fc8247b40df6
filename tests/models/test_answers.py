"""What a model says arrives whole and piece by piece, whichever API it is asked through."""

import base64
from typing import Any

import pytest
from pydantic import BaseModel

from tests.fake_api import FakeApi, Raw
from tests.models.wire import chat, claude_begin, claude_block, claude_end, gemini, sse
from timbal import Agent, Model
from timbal.stores import MemoryStore
from timbal.types.content import FileContent, TextContent, ThinkingContent, ToolUseContent
from timbal.types.events import DeltaEvent, OutputEvent
from timbal.types.message import Message

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n not really").decode()


def look_up(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def uses(*calls: tuple[str, Any]) -> dict[str, Any]:
    """aimock's response with tool calls; the arguments of each as a dict, or as the text that the model wrote."""
    return {
        "toolCalls": [{"id": f"call_{i}", "name": name, "arguments": given} for i, (name, given) in enumerate(calls)]
    }


def final(events: list[Any]) -> OutputEvent:
    output = events[-1]
    assert isinstance(output, OutputEvent)
    return output


def texts(events: list[Any], key: str = "text_delta") -> list[str]:
    return [e.item[key] for e in events if isinstance(e, DeltaEvent) and key in e.item]


async def test_text_streams_in_one_block_and_arrives_whole(api: FakeApi, model: Model) -> None:
    api.say({"content": "The quick brown fox jumps over the lazy dog"})
    events = [event async for event in Agent("fox", model)("go")]
    output = final(events)
    output.raise_for_status()
    assert output.output.collect_text() == "The quick brown fox jumps over the lazy dog"
    pieces = [event.item for event in events if isinstance(event, DeltaEvent)]
    assert [item["type"] for item in pieces] == ["text_delta", "text_delta", "text_delta", "content_block_stop"]
    assert "".join(texts(events)) == output.output.collect_text()
    assert len({item["id"] for item in pieces}) == 1
    assert len(api.requests) == 1


async def test_the_providers_own_stop_reason_is_kept(api: FakeApi, model: Model) -> None:
    api.say({"content": "Once upon", "finishReason": "length"})
    output = await Agent("fox", model)("go")
    assert output.status.code == "success"
    expected = {"openai": ("length", "incomplete"), "anthropic": ("max_tokens",), "google": ("MAX_TOKENS",)}
    assert output.status.reason in expected[model.name.partition("/")[0]]
    assert output.output.stop_reason == output.status.reason


async def test_parallel_tool_calls_stream_and_their_results_go_back_in_order(api: FakeApi, model: Model) -> None:
    api.say(uses(("look_up", {"city": "Rome"}), ("look_up", {"city": "Oslo"})), {"content": "Sunny"})
    events = [event async for event in Agent("meteo", model, [look_up])("weather?")]
    assert final(events).output.collect_text() == "Sunny"
    items = [event.item for event in events if isinstance(event, DeltaEvent) and event.path == "meteo.llm"]
    for id, city in (("call_0", "Rome"), ("call_1", "Oslo")):
        mine = [item for item in items if item["id"] == id]
        assert (mine[0]["type"], mine[0]["name"], mine[-1]["type"]) == ("tool_use", "look_up", "content_block_stop")
        arguments = "".join(item["input_delta"] for item in mine if item["type"] == "tool_use_delta")
        assert city in (arguments or str(mine[0]["input"]))
    first, second = (str(api.requests[-1].body).index(text) for text in ("sunny in Rome", "sunny in Oslo"))
    assert first < second


async def test_a_tool_is_described_to_the_model_with_its_schema(api: FakeApi, model: Model) -> None:
    api.say({"content": "ok"})
    await Agent("meteo", model, [look_up], system_prompt="Speak like a sailor.")("weather?")
    sent = str(api.requests[0].body)
    assert all(text in sent for text in ("look_up", "The weather of a city.", "'city'", "Speak like a sailor."))


@pytest.mark.parametrize("written", ['{"city": ', '["Rome"]', '{"city": NaN}'], ids=["cut off", "no object", "NaN"])
async def test_arguments_that_are_no_json_object_are_answered_with_an_error(api: FakeApi, written: str) -> None:
    api.say({"content": "Sorry"})
    call = {"index": 0, "id": "call_9", "type": "function", "function": {"name": "look_up", "arguments": written}}
    api.serve(Raw(sse(chat({"tool_calls": [call]}), chat({}, "tool_calls"), done=True)))
    output = await Agent("meteo", Model("openai/gpt-5"), [look_up])("weather?")
    assert output.output.collect_text() == "Sorry"
    answered = [m for m in api.requests[-1].body["messages"] if m["role"] == "tool"]
    assert "unknown argument 'INVALID_JSON'. The arguments are: city" in answered[0]["content"].replace(
        "; missing argument 'city'", ""
    )


async def test_an_id_that_the_provider_repeats_is_a_fresh_one_from_its_first_delta_on(api: FakeApi) -> None:
    api.say(uses(("look_up", {"city": "Rome"})), uses(("look_up", {"city": "Oslo"})), {"content": "Sunny"})
    events = [event async for event in Agent("meteo", Model("openai/gpt-5"), [look_up])("weather?")]
    told = [e.item["id"] for e in events if isinstance(e, DeltaEvent) and e.item["type"] == "tool_use"]
    replies = [e.output for e in events if isinstance(e, OutputEvent) and e.path == "meteo.llm"]
    kept = [part.id for reply in replies for part in reply.content if isinstance(part, ToolUseContent)]
    assert told == kept
    assert len(set(told)) == 2


async def test_thinking_streams_and_goes_back_to_its_provider_as_it_came(api: FakeApi, model: Model) -> None:
    if not model.name.startswith("google"):
        api.say({**uses(("look_up", {"city": "Rome"})), "reasoning": "Rome, then."}, {"content": "Sunny"})
    else:  # aimock does not sign Gemini's thoughts
        api.say({"content": "Sunny"})
        call = {"functionCall": {"id": "g1", "name": "look_up", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"}
        api.serve(Raw(sse(gemini({"text": "Rome, then.", "thought": True}), gemini(call, finish="STOP"))))
    agent: Agent[Any] = Agent("meteo", model, [look_up], model_params={"max_tokens": 4000})
    events = [event async for event in agent("weather?")]
    final(events).raise_for_status()
    assert "".join(texts(events, "thinking_delta")) == "Rome, then."
    sent = api.requests[-1].body
    match model.name.partition("/")[0], model.api:
        case "openai", None:
            assert [m["reasoning_content"] for m in sent["messages"] if m["role"] == "assistant"] == ["Rome, then."]
        case "openai", _:
            (item,) = [item for item in sent["input"] if item.get("type") == "reasoning"]
            assert item["encrypted_content"]
            assert item["summary"] == [{"text": "Rome, then.", "type": "summary_text"}]
            assert sent["store"] is False
        case "anthropic", _:
            thought = sent["messages"][1]["content"][0]
            assert thought == {
                "type": "thinking",
                "thinking": "Rome, then.",
                "signature": "aimock-placeholder-signature",
            }
        case "google", _:
            (called,) = [part for part in sent["contents"][1]["parts"] if "functionCall" in part]
            assert called["thoughtSignature"] == "c2ln"


async def test_redacted_thinking_goes_back_unread(api: FakeApi) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}
    given = {"type": "input_json_delta", "partial_json": '{"city": "Rome"}'}
    blocks = [
        *claude_block(0, {"type": "redacted_thinking", "data": "c2VjcmV0"}),
        *claude_block(1, call, given),
    ]
    api.serve(Raw(sse(claude_begin(), *blocks, *claude_end("tool_use"), named=True)))
    api.say({"content": "Sunny"})
    output = await Agent("meteo", Model("anthropic/claude-sonnet-4-5"), [look_up])("weather?")
    assert output.output.collect_text() == "Sunny"
    assert api.requests[1].body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "c2VjcmV0"}


async def test_another_providers_thinking_is_left_out(api: FakeApi, model: Model) -> None:
    api.say({"content": "Hello again"})
    thinking = ThinkingContent("I know Ada.", "someone-else::c2ln")
    said = [Message("user", "hello"), Message("assistant", [thinking, "Hello Ada"], "stop"), Message("user", "hello?")]
    output = await Agent("greeter", model)(messages=said)
    assert output.output.collect_text() == "Hello again"
    assert "I know Ada" not in str(api.requests[0].body)


async def test_usage_is_counted_with_what_was_cached(api: FakeApi, model: Model) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "input_tokens": 11, "output_tokens": 7}
    gemini_usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    api.say({"content": "ok", "usage": {**usage, **gemini_usage, "total_tokens": 18}})
    output = await Agent("fox", model)("go")
    assert output.usage[f"{model.name}:input_tokens"] == 11
    assert output.usage[f"{model.name}:output_tokens"] == 7


async def test_cached_tokens_are_told_apart(api: FakeApi) -> None:
    end = chat({}, "stop") | {
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 2,
            "total_tokens": 22,
            "prompt_tokens_details": {"cached_tokens": 16},
        }
    }
    api.serve(Raw(sse(chat({"content": "ok"}), end, done=True)))
    output = await Agent("fox", Model("openai/gpt-5"))("go")
    assert output.usage == {
        "openai/gpt-5:input_tokens": 20,
        "openai/gpt-5:output_tokens": 2,
        "openai/gpt-5:cache_read_tokens": 16,
    }


async def test_images_and_files_are_sent_in_the_prompt(api: FakeApi, model: Model) -> None:
    api.say({"content": "A pixel"})
    image = FileContent("image/png", data=PIXEL)
    pdf = FileContent("application/pdf", data=base64.b64encode(b"%PDF-1.4 tiny").decode())
    output = await Agent("eye", model)(["What is this?", image, pdf])
    assert output.output.collect_text() == "A pixel"
    sent = str(api.requests[0].body).replace("_", "/").replace("-", "+")
    assert PIXEL.rstrip("=") in sent
    assert base64.b64encode(b"%PDF-1.4 tiny").decode().rstrip("=") in sent


@pytest.mark.parametrize("name", ["openai/gpt-5", "anthropic/claude-sonnet-4-5"])
async def test_an_image_by_url_is_sent_as_its_url(api: FakeApi, name: str) -> None:
    api.say({"content": "A pixel"})
    await Agent("eye", name)(["What is this?", FileContent("image/png", url="https://example.com/pixel.png")])
    assert "https://example.com/pixel.png" in str(api.requests[0].body)


async def test_an_image_that_the_model_made_is_part_of_its_reply_and_goes_back(api: FakeApi) -> None:
    api.say({"content": "Nicer"})
    api.serve(Raw(sse(gemini({"inlineData": {"mimeType": "image/png", "data": PIXEL}}, finish="STOP"))))
    agent: Agent[Any] = Agent("painter", "google/gemini-2.5-flash-image", store=MemoryStore())
    painted = await agent("Paint.")
    assert painted.output.content == [FileContent("image/png", data=PIXEL)]
    await agent("Nicer.", parent_id=painted.run_id)
    (made,) = api.requests[1].body["contents"][1]["parts"]
    assert "image/png" in str(made["inlineData"])


async def test_a_tool_can_give_an_image_back(api: FakeApi, model: Model) -> None:
    def draw() -> Any:
        """Draw."""
        return [TextContent("a pixel"), FileContent("image/png", data=PIXEL)]

    api.say(uses(("draw", {})), {"content": "Nice"})
    output = await Agent("eye", model, [draw])("draw")
    output.raise_for_status()
    assert PIXEL.rstrip("=") in str(api.requests[-1].body).replace("_", "/").replace("-", "+")


class City(BaseModel):
    name: str
    people: int


async def test_an_output_model_is_asked_for_and_validated(api: FakeApi, model: Model) -> None:
    api.say({"content": '{"name": "Rome", "people": 2800000}'})
    output = await Agent("geo", model, output_model=City)("Rome?")
    assert output.output == City(name="Rome", people=2800000)
    assert "people" in str(api.requests[0].body)


async def test_an_output_model_that_is_no_object_is_put_into_words(api: FakeApi, model: Model) -> None:
    api.say({"content": "[1, 2]"})
    output = await Agent("count", model, output_model=list[int])("two numbers")
    assert output.output == [1, 2]
    assert "JSON Schema" in str(api.requests[0].body)


async def test_an_output_model_works_beside_tools(api: FakeApi, model: Model) -> None:
    api.say(uses(("look_up", {"city": "Rome"})), {"content": '{"name": "Rome", "people": 1}'})
    output = await Agent("geo", model, [look_up], output_model=City)("Rome?")
    assert output.output == City(name="Rome", people=1)


async def test_model_params_are_sent(api: FakeApi, model: Model) -> None:
    api.say({"content": "ok"})
    await Agent("fox", model, model_params={"max_tokens": 123, "extra_headers": {"x-team": "blue"}})("go")
    assert "123" in str(api.requests[0].body)
    assert api.requests[0].headers["x-team"] == "blue"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"max_token": 5}, "unknown model_params max_token. Known are: "),
        ({"max_tokens": "many"}, "model_params['max_tokens'] can't be 'many': Input should be a valid integer"),
        ({"max_retries": "often"}, "model_params['max_retries'] can't be 'often'"),
    ],
)
async def test_model_params_that_make_no_sense_are_named(
    api: FakeApi, model: Model, params: dict[str, Any], said: str
) -> None:
    output = await Agent("fox", model, model_params=params)("go")
    assert output.status.reason == "model_error"
    assert said in str(output.status.message)
    assert api.requests == []


async def test_halves_of_a_surrogate_pair_are_one_character(api: FakeApi) -> None:
    body = sse(chat({"content": "\ud83d"}), chat({"content": "\ude00"}), chat({}, "stop"), done=True)
    api.serve(Raw(body))
    output = await Agent("fox", Model("openai/gpt-5"))("go")
    assert output.output.collect_text() == "\U0001f600"
