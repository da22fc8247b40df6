"""What every store keeps, as tests: whoever writes a store runs them on it with pytest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...stores.base import BaseStore
from .asking import Asking
from .erasing import Erasing
from .keeping import Keeping
from .lasting import Lasting
from .leasing import Leasing
from .pruning import Pruning
from .recovering import Recovering
from .settling import Settling
from .sharing import Sharing


def store_conformance(
    open: Callable[[Path, float], BaseStore], *, processes: bool = True, durable: bool = True
) -> type[Any]:
    """The tests as a class that pytest collects: `TestMyStore = store_conformance(open)`.

    `open(folder, lease_seconds)` makes a store object; each test has a new and empty folder, and for the same folder it
    is asked for other store objects on the same data. It is a function of a module, so that other processes find it.
    `processes=False`: for a store that other processes can't open; `durable=False`: for one that ends with its process.
    """
    parts: tuple[type, ...] = (Keeping, Leasing, Settling, Recovering, Asking, Erasing, Pruning)
    if processes:
        parts += (Sharing,)
    if durable:
        parts += (Lasting,)
    return type("StoreConformance", parts, {"open_at": staticmethod(open), "__doc__": store_conformance.__doc__})
