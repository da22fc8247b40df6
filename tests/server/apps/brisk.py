"""Runnables of the house behind a server with little patience."""

from house import count, pay, wait  # type: ignore[import-not-found]

from timbal.server import Limits, create_app
from timbal.server.logs import set_up_logs

set_up_logs("text")
app = create_app([count, pay, wait], store="sqlite:///brisk.db", limits=Limits(heartbeat=0.1, slow_reader=1.0))
