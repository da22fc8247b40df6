"""Server-sent events as text: pure, LF only, one line of JSON each (WHATWG HTML, section 9.2)."""

from __future__ import annotations

MEDIA_TYPE = "text/event-stream"
#: Sent while there is nothing to tell: it keeps proxies from giving up.
HEARTBEAT = b":\n\n"


def numbered(number: int, data: str) -> bytes:
    """An event that a reader can go on after, by its number."""
    return f"id: {number}\ndata: {data}\n\n".encode()


def named(event: str, data: str) -> bytes:
    """An event of the stream itself, under a name of its own."""
    return f"event: {event}\ndata: {data}\n\n".encode()
