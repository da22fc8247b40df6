"""A server with questions, and its inbox as tests look at it."""

from pathlib import Path
from typing import Any, NamedTuple

import httpx
from playwright.sync_api import Locator, Page

from tests.server.servers import Server

APP = Path(__file__).parent / "apps" / "questions.py"
ADDRESS = {"street": "Main Street 1", "city": "Vienna"}
REFUND: dict[str, Any] = {"customer": "Ada", "amount": 250, "address": ADDRESS}


class Asked(NamedTuple):
    """An item that waits."""

    server: Server
    run_id: str
    id: str

    @property
    def path(self) -> str:
        return f"/pending/{self.run_id}/{self.id}"

    def open(self, page: Page) -> Locator:
        """Its card, on this page."""
        page.goto(f"{self.server.url}/#/inbox/{self.run_id}/{self.id}")
        page.locator(f"#head-{self.id}").wait_for()
        return page.get_by_role("article")

    def record(self) -> Any:
        with self.server.client() as client:
            return client.get(self.path).json()

    def value(self) -> Any:
        """What it was answered with."""
        settled = self.record()["settled"]
        assert settled is not None, "it still waits"
        return settled["value"]

    def answer(self, value: Any, **headers: str) -> httpx.Response:
        with self.server.client() as client:
            return client.post(self.path, json={"value": value}, headers=headers)


def ask(server: Server, payload: Any, kind: str = "suspend", **more: Any) -> Asked:
    """Have something asked."""
    return run(server, "ask", payload=payload, kind=kind, **more)


def run(server: Server, name: str, headers: dict[str, str] | None = None, **input: Any) -> Asked:
    """Run what asks something."""
    with server.client() as client:
        output = client.post(f"/{name}/run", json=input, headers=headers).json()
    told = output["output"]
    return Asked(server, output["run_id"], told.get("interaction_id") or told["approval_id"])
