"""The assistant: a tool that asks twice, and its model, which is a script where no key for a real one is set."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..runnables.agent import Agent
from ..runnables.tool import Tool
from ..state import get_run_context, step
from ..testing import TestModel
from ..tools import ask_user, confirm
from ..types.content import TextContent, ToolResultContent, ToolUseContent
from ..types.message import Message

REQUEST = "Set up a database for my shop."
ENGINES = ["postgres", "mysql", "mariadb"]
#: Which model is used when its key is set; the first one whose is.
MODELS = {"OPENAI_API_KEY": "openai/gpt-5-mini", "ANTHROPIC_API_KEY": "anthropic/claude-haiku-4-5"}
SCRIPTED = "scripted"
#: The label of a run that says which model it was begun with.
MODEL_LABEL = "model"
SYSTEM_PROMPT = "Do what you are asked with your tool, at once and once. Then say in a sentence what came of it."
#: The kinds of the questions, in the order in which they are asked.
QUESTIONS = ("ask_user", "confirm")
#: Both in the folder of the demo, which is the working folder of its processes.
STORE, EFFECTS = "runs.db", "effects.txt"
#: What a process writes into the effects when the tool's function starts.
STARTS = "set_up_database starts"


# The demo shows the source of this function: its lines are short.
def set_up_database(app: str) -> str:
    """Set up a database for an application, and retire its old one."""
    server = provision_server(app)  # a @step
    engine = ask_user("Which database should it be?", ENGINES)
    address = create_database(server, engine)  # a @step
    if not confirm(f"Drop the old database of {app}, for good"):
        return f"{address} is up. The old database is untouched."
    drop_old_database(app)  # a @step
    return f"{address} is up. The old database is gone."


@step
def provision_server(app: str) -> str:
    """Give the name of a server that is up."""
    server = f"{app}-db"
    _effect(f"provision_server: {server} is up")
    return server


@step
def create_database(server: str, engine: str) -> str:
    """Give the address of a new database on the server."""
    _effect(f"create_database: {engine} on {server}")
    return f"{engine}://{server}"


@step
def drop_old_database(app: str) -> None:
    """Drop the database that was there before."""
    _effect(f"drop_old_database: {app}-old is gone")


def choose_model(environment: Mapping[str, str]) -> str:
    """The name of the model: a real one where its key is set, or `SCRIPTED`."""
    return next((model for key, model in MODELS.items() if environment.get(key, "").strip()), SCRIPTED)


def assistant(model: str) -> Agent[Any]:
    """The assistant with the model of this name, and with its store and its effects in the working folder."""
    return Agent(
        "assistant",
        model=TestModel(handler=reply, chunk_size=6) if model == SCRIPTED else model,
        system_prompt=SYSTEM_PROMPT,
        description="Sets up a database for a shop. It asks which one, and before it drops the old one.",
        examples=[REQUEST],
        tools=[Tool(set_up_database, pre_hook=_starts)],
        store=f"sqlite:///{STORE}",
    )


def reply(messages: Sequence[Message]) -> Message:
    """What the script says next: it uses its tool, then tells what came of it."""
    last = messages[-1].content[0]
    if isinstance(last, ToolResultContent):
        return Message("assistant", f"Done. {last.content}", "end_turn")
    use = ToolUseContent(id="call_1", name="set_up_database", input={"app": "shop"})
    return Message("assistant", [TextContent(text="I will, with set_up_database."), use], "tool_use")


def _effect(what: str) -> None:
    """What a step does to the world: a line in a file. Whoever follows the run is told, too."""
    _write(what)
    get_run_context().emit(what)


def _starts() -> None:
    _write(STARTS)


def _write(what: str) -> None:
    with Path(EFFECTS).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {what}\n")
