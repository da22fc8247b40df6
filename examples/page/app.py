"""A question of a kind of its own. Run it with: timbal serve app.py::plan --static static"""

from typing import Any

from timbal import Tool, suspend

PLACES = [
    {"name": "Harbour", "x": 20, "y": 70},
    {"name": "Market square", "x": 50, "y": 40},
    {"name": "Old mill", "x": 80, "y": 20},
]


def meet(topic: str) -> dict[str, Any]:
    """Plan a meeting, at a place that somebody picks on a map."""
    question = {"question": f"Where do we meet about {topic}?", "places": PLACES}
    place = suspend(question, kind="pick_location", response_schema={"type": "string"})
    return {"topic": topic, "place": place}


plan = Tool(meet, name="plan")
