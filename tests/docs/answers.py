"""What the models of a page say: aimock's fixtures, which the fake API has while the page runs."""

from typing import Any

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "docs/models.md": [
        {
            "match": {"userMessage": "Say hello."},
            "response": {"content": "Hello! Shall we set up a database?"},
        },
        {
            "match": {"userMessage": "Rome or Oslo?", "hasToolResult": False},
            "response": {
                "toolCalls": [
                    {"id": "call_1", "name": "weather", "arguments": {"city": "Rome"}},
                    {"id": "call_2", "name": "weather", "arguments": {"city": "Oslo"}},
                ]
            },
        },
        {"match": {"userMessage": "Rome or Oslo?"}, "response": {"content": "Sunny in both."}},
        {
            "match": {"userMessage": "6 times 7"},
            "response": {
                "content": "42",
                "usage": {"prompt_tokens": 14, "completion_tokens": 2, "total_tokens": 16},
            },
        },
        {"match": {"userMessage": "What is on it?"}, "response": {"content": "A dot."}},
        {"match": {"userMessage": "Colosseum"}, "response": {"content": '{"name": "Rome", "people": 2800000}'}},
    ],
}
