"""A TCP proxy on loopback that cuts connections where a test says so."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Proxy:
    """Passes everything on to `port`, until told otherwise.

    `lose_answers`: what the server says does not arrive any more; `lose_questions`: what the client says. `budget` is
    called for each new connection: after so many bytes, both ways together, it is cut.
    """

    def __init__(self, port: int, budget: Callable[[], int | None] = lambda: None) -> None:
        self._target = ("127.0.0.1", port)
        self._budget = budget
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.lose_answers = False
        self.lose_questions = False
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections that there are; new ones work again."""
        self.lose_answers = self.lose_questions = False
        while self._pairs:
            self._break(self._pairs.pop())

    def _break(self, pair: tuple[socket.socket, socket.socket]) -> None:
        self.cuts += 1
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            pair = (client, server)
            self._pairs.append(pair)
            left = [self._budget()]
            for source, sink, lost in (
                (client, server, lambda: self.lose_questions),
                (server, client, lambda: self.lose_answers),
            ):
                threading.Thread(target=self._pass_on, args=(pair, source, sink, lost, left), daemon=True).start()

    def _pass_on(
        self,
        pair: tuple[socket.socket, socket.socket],
        source: socket.socket,
        sink: socket.socket,
        lost: Callable[[], bool],
        left: list[int | None],
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                budget = left[0]
                if budget is not None:
                    data, left[0] = data[:budget], budget - len(data)
                if not lost():
                    sink.sendall(data)
                if left[0] is not None and left[0] <= 0:
                    break
        if pair in self._pairs:
            with contextlib.suppress(ValueError):
                self._pairs.remove(pair)
                self._break(pair)
