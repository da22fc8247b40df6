"""One connection to PostgreSQL: what it sends together is one transaction and one round trip."""

from __future__ import annotations

import re
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..errors import StoreError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

#: A value as it is sent, always as text: numbers, strings, JSON in bytes.
Value: TypeAlias = "str | int | bytes | bool | None"
Row: TypeAlias = "tuple[Any, ...]"

#: An answer that takes longer is taken for a connection that is gone, in seconds.
ANSWER_SECONDS = 60.0
#: Parameters of libpq that a URL may set otherwise: a host that has gone is noticed.
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "timbal",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "client_encoding": "UTF8",
}
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Target(NamedTuple):
    """Where to connect. `label` names it in messages, without secrets; `conninfo` may hold a password."""

    conninfo: str
    schema: str
    label: str

    def __repr__(self) -> str:
        return f"Target({self.label!r})"


class Refused(StoreError):
    """The server refused a statement; `.code` is its SQLSTATE."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class Cut(Exception):
    """The connection is gone. `sent`: what was asked may have been done all the same."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class Statement(NamedTuple):
    """SQL to prepare under a name; `columns` convert what it returns (`bool` from PostgreSQL's `t` and `f`)."""

    name: str
    sql: str
    columns: tuple[type, ...] = ()


class Ask(NamedTuple):
    """A statement with its values."""

    statement: Statement
    values: Sequence[Value]


def psycopg_conninfo() -> Any:
    """How psycopg reads URLs; raises `ImportError` with what to install where it is not there."""
    try:
        from psycopg import conninfo
    except ImportError as error:
        raise ImportError(
            "PostgresStore needs psycopg, which is not installed: pip install 'timbal-hitl[postgres]'"
        ) from error
    return conninfo


def read_url(url: str, schema: str | None) -> Target:
    """What a URL (or `key=value` words of libpq) says; raises `ValueError` without repeating it."""
    conninfo = psycopg_conninfo()
    base, mark, query = url.partition("?")
    if mark and "://" in base:
        parts = query.split("&")
        schema = schema or next((part[7:] for part in parts if part.startswith("schema=")), None)
        url = "?".join(filter(None, (base, "&".join(part for part in parts if not part.startswith("schema=")))))
    schema = schema or "timbal"
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise ValueError(
            f"schema={schema!r} can't be used: it is lower-case letters, digits and _, at most 63, not beginning with "
            "a digit or pg_"
        )
    try:
        words = conninfo.conninfo_to_dict(url)
        ports = str(words.get("port") or 5432)
        if not ports.replace(",", "").isdecimal():
            raise ValueError("port")
    except Exception:  # its text may quote the password
        raise ValueError(
            "this PostgreSQL URL can't be read: it looks like postgresql://user:password@host:5432/database, and "
            "special characters in it are written as %40 for @, %3A for : and so on"
        ) from None
    host = words.get("host") or "localhost"
    label = f"PostgreSQL at {host}:{ports}, database {words.get('dbname') or '(default)'}, schema {schema}"
    return Target(conninfo.make_conninfo(**{**_DEFAULTS, **words}), schema, label)


class Session:
    """A connection, used by one thread at a time. What is sent with `run` is kept all or not at all."""

    def __init__(self, target: Target) -> None:
        """Connect; raises `Cut`."""
        import psycopg
        from psycopg import pq

        self.target = target
        self._ok = {int(pq.ExecStatus.COMMAND_OK), int(pq.ExecStatus.TUPLES_OK)}
        self._sync = int(pq.ExecStatus.PIPELINE_SYNC)
        self._aborted = int(pq.ExecStatus.PIPELINE_ABORTED)
        self._sqlstate = int(pq.DiagnosticField.SQLSTATE)
        try:
            self._connection = psycopg.Connection.connect(target.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise Cut(_plain(str(error)), sent=False) from error
        self._link: PGconn = self._connection.pgconn
        self._link.nonblocking = 1
        self._prepared: set[str] = set()
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)

    def fileno(self) -> int:
        return self._link.socket

    def close(self) -> None:
        self._connection.close()

    def script(self, sql: str) -> list[Row]:
        """Run statements one after the other, as a script; rows of the last one. Only before the first `run`."""
        rows: list[Row] = []
        with self._cut_if_broken():
            self._link.send_query(sql.encode())
            self._flush()
            refusal: Refused | None = None
            while (result := self._result(between=False)) is not None:
                refusal = refusal or self._refusal(result)
                rows = list(_rows(result, (str,) * result.nfields))
        if refusal is not None:
            raise refusal
        return rows

    def prepare(self, statements: Sequence[Statement]) -> None:
        """Prepare and plan these, before the first `run`: in a new session that takes longer than to run them."""
        script = ""
        for name, sql, _ in statements:
            nothing = ", ".join(["NULL"] * max(map(int, re.findall(r"\$(\d+)", sql))))
            script += f"PREPARE {name} AS {sql}; EXPLAIN EXECUTE {name} ({nothing});"
        self.script(script)
        self._prepared.update(statement.name for statement in statements)

    def run(self, asks: Sequence[Ask]) -> list[list[Row]]:
        """The rows of each statement. They are one transaction, and it is durable when this returns.

        Raises `Refused`, and then nothing is kept; or `Cut`.
        """
        link = self._link
        try:
            values = [[_sent(value) for value in ask.values] for ask in asks]
        except UnicodeEncodeError as error:
            raise Refused(f"{self.target.label}: {error}: nothing of this was kept", "22021") from error
        with self._cut_if_broken():
            if not link.pipeline_status:
                link.enter_pipeline_mode()
            new = [name for ask, given in zip(asks, values, strict=True) if (name := self._send(ask.statement, given))]
            link.pipeline_sync()
            self._flush()
            rows, refusal = self._answers(asks, new)
        if refusal is not None:
            raise refusal
        return rows

    @contextmanager
    def _cut_if_broken(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise Cut(_plain(str(error)), sent=True) from error

    def _send(self, statement: Statement, values: Sequence[bytes | None]) -> str:
        """Send a statement; gives its name if it is being prepared with it."""
        if not statement.name:
            self._link.send_query_params(statement.sql.encode(), values)
            return ""
        known = statement.name in self._prepared
        if not known:
            self._prepared.add(statement.name)
            self._link.send_prepare(statement.name.encode(), statement.sql.encode())
        self._link.send_query_prepared(statement.name.encode(), values)
        return "" if known else statement.name

    def _flush(self) -> None:
        while self._link.flush():
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN | select.POLLOUT)
            ready = poll.poll(ANSWER_SECONDS * 1000)
            if not ready:
                raise Cut(f"nothing could be sent for {ANSWER_SECONDS:g} s", sent=True)
            if ready[0][1] & ~select.POLLOUT:
                self._link.consume_input()

    def _answers(self, asks: Sequence[Ask], new: list[str]) -> tuple[list[list[Row]], Refused | None]:
        rows: list[list[Row]] = []
        refusal: Refused | None = None
        for ask in asks:
            if new and ask.statement.name == new[0]:
                name = new.pop(0)
                result = self._result()
                if result is None or result.status not in self._ok:
                    self._prepared.discard(name)
                refusal = refusal or self._refusal(result)
            result = self._result()
            refusal = refusal or self._refusal(result)
            if refusal is None and result is not None:
                rows.append(list(_rows(result, ask.statement.columns)))
        last = self._result(between=False)
        while last is None or last.status != self._sync:
            refusal = refusal or self._refusal(last)
            last = self._result(between=False)
        return rows, refusal

    def _result(self, *, between: bool = True) -> PGresult | None:
        """The next result. `between`: with the end of its statement's results."""
        self._arrive()
        result = self._link.get_result()
        if between and result is not None:
            self._arrive()
            self._link.get_result()
        return result

    def _arrive(self) -> None:
        """Wait until a result is here, outside of libpq: it would keep all threads waiting."""
        until = 0.0
        while self._link.is_busy():
            now = time.monotonic()
            until = until or now + ANSWER_SECONDS
            if not self._poll.poll(max(0.0, until - now) * 1000):
                raise Cut(f"no answer for {ANSWER_SECONDS:g} s", sent=True)
            self._link.consume_input()

    def _refusal(self, result: PGresult | None) -> Refused | None:
        try:
            if result is not None and result.status not in (self._sync, self._aborted):
                self._check(result)
        except Refused as refusal:
            return refusal
        return None

    def _check(self, result: PGresult) -> None:
        if result.status in self._ok:
            return
        code = (result.error_field(self._sqlstate) or b"").decode()
        text = _plain(result.get_error_message())
        if not code or code[:2] == "08" or code in ("57P01", "57P02", "57P03", "57P05"):
            raise Cut(text, sent=True)
        raise Refused(f"{self.target.label}: {text}: {_meaning(code)}", code)

    def told(self) -> list[str]:
        """What other sessions notified this one of; raises `Cut`."""
        with self._cut_if_broken():
            self._link.consume_input()
        heard = []
        while (notify := self._link.notifies()) is not None:
            heard.append(notify.extra.decode())
        return heard


_MEANINGS = {
    "25006": "this server only reads (a standby?); nothing of this was kept",
    "40P01": "two transactions waited for each other; nothing of this was kept, do it again",
    "42501": "the role of this URL may not do that; let the schema's owner grant it",
    "42P01": "the schema was changed or dropped; nothing of this was kept",
    "22P05": "PostgreSQL can't keep the character U+0000 in a name, a kind or a label",
    "22021": "PostgreSQL can't keep the character U+0000 in a name, a kind or a label",
    "53100": "the disk is full; nothing of this was kept, and it can be done again when there is room",
    "55P03": "another transaction has kept this run locked; nothing of this was kept, do it again",
}


def _meaning(code: str) -> str:
    return _MEANINGS.get(code, "nothing of this was kept")


def _plain(text: str) -> str:
    """An error's text in one line."""
    return " ".join(text.split()) or "the connection is gone"


def _sent(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"t" if value else b"f"
    return kept_text(str(value)).encode()


def kept_text(text: str) -> str:
    """As PostgreSQL can have it: without NULs, with which it would cut the text off. (Records have them escaped.)"""
    return text.replace("\0", "\ufffd")


def _rows(result: PGresult, columns: tuple[type, ...]) -> Iterator[Row]:
    for row in range(result.ntuples):
        yield tuple(_read(result.get_value(row, i), kind) for i, kind in enumerate(columns))


def _read(value: bytes | None, kind: type) -> Any:
    if value is None:
        return None
    if kind is bool:
        return value == b"t"
    return value.decode() if kind is str else kind(value)
