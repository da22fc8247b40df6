"""A few runnables that end or pause by themselves, for requests that a machine makes up."""

from house import assistant, order, pay  # type: ignore[import-not-found]

from timbal.server import create_app

app = create_app([assistant, order, pay], default=order)
