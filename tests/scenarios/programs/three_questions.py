"""A tool with three questions, one after the other."""

from tests.scenarios.tools import play
from timbal import suspend


def order(item: str) -> str:
    size = suspend({"question": f"Which size of {item}?"}, kind="size")
    colour = suspend({"question": "Which colour?"}, kind="colour")
    sure = suspend({"question": f"{size} and {colour}, sure?"}, kind="confirm")
    return f"{item}, {size}, {colour}, {sure}"


if __name__ == "__main__":
    play(order)
