"""Logs of a server: the standard library's, a line of text or of JSON each, with the run they are about."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """`{time, level, logger, message, run_id?, error?}`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if run_id := getattr(record, "run_id", None):
            line["run_id"] = run_id
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """`12:00:00 INFO timbal.server run ... has begun`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%H:%M:%S")


def set_up_logs(kind: str) -> None:
    """Write what servers say to stderr, as `text` or `json`; `quiet`: only what went wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    for name in ("timbal", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if kind == "quiet" else logging.INFO)
    logging.getLogger("uvicorn.access").disabled = True  # our own line tells of each request
