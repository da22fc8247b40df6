"""What a browser reports while a test runs: anything that the test did not expect fails it."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, ConsoleMessage, Response, WebError


class PageGuard:
    """Watches all pages of the contexts that it is given."""

    def __init__(self) -> None:
        self._reports: list[str] = []
        self._expected: set[str] = set()

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._note_message)
        context.on("weberror", self._note_error)
        context.on("response", self._note_response)

    def expect(self, report: int | str) -> None:
        """A response of this status, or a report that contains this text, belongs to the test, and has to come."""
        self._expected.add(f"response {report} " if isinstance(report, int) else report)

    @contextmanager
    def checking(self) -> Iterator["PageGuard"]:
        """Fail at the end on what was reported and not expected, and on what was expected and did not come."""
        self._reports.clear()
        self._expected.clear()
        yield self
        surprises = [one for one in self._reports if not any(part in one for part in self._expected)]
        missing = [part for part in self._expected if not any(part in one for one in self._reports)]
        assert not surprises, "\n".join(["the page reported what the test did not expect:", *surprises])
        assert not missing, f"expected, but not reported: {missing}"

    def _note_message(self, message: ConsoleMessage) -> None:
        # Chromium tells of each bad response in the console, too, but that is noted once, by the response; and gives
        # advice ("verbose") that no script of a page can give.
        if str(message.type) != "verbose" and "the server responded with a status of" not in message.text:
            self._reports.append(f"console.{message.type}: {message.text}")

    def _note_error(self, error: WebError) -> None:
        self._reports.append(f"error: {error.error}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 400:
            self._reports.append(f"response {response.status} {response.request.method} {response.url}")
