"""The tables of a PostgreSQL store: made and migrated by whoever comes first, refused where they are not ours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ..errors import StoreError
from .postgres_session import Refused, Session, Statement

#: Files `postgres_<version>.sql` bring a schema from the version before.
VERSION = 2

_LOOK = """
    SELECT n.oid IS NOT NULL,
        coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
        (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid),
        (SELECT oid FROM pg_class WHERE relnamespace = n.oid AND relname = 'timbal_version') IS NOT NULL,
        (SELECT bool_and(has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
            FROM pg_class WHERE relnamespace = n.oid AND relname IN ('executions', 'runs', 'facts', 'questions')),
        pg_get_userbyid(n.nspowner), current_user
    FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = '{schema}'
"""


def check_schema(session: Session) -> None:
    """Make sure that the schema is there, ours and of our version; raises `StoreError`, and nothing was touched."""
    if _version(session) != VERSION:
        _migrate(session)


def _version(session: Session) -> int:
    """The version of what is there, 0 for nothing; raises `StoreError` where it is not for us."""
    schema, label = session.target.schema, session.target.label
    exists, usable, tables, versioned, allowed, owner, me = session.script(_LOOK.format(schema=schema))[0]
    if exists == "f" or (usable == "t" and tables == "0"):
        return 0
    yours = f"it is owned by {owner}, and this connection is {me}"
    if usable == "f" or (versioned == "t" and allowed == "f"):
        raise StoreError(
            f"{label}: this role may not use the schema: {yours}. Connect as its owner, let the owner grant usage and "
            "all rights on its tables, or choose another with ?schema=name. Nothing was touched"
        )
    if versioned == "f":
        raise StoreError(
            f"{label}: the schema holds tables of something else; {yours}. Choose another with ?schema=name. "
            "Nothing was touched"
        )
    version = int(session.script(f'SELECT version FROM "{schema}".timbal_version')[0][0])
    if version > VERSION:
        raise StoreError(
            f"{label}: the schema has version {version}, and this library knows {VERSION}: use a newer one. "
            "Nothing was touched"
        )
    return version


def _migrate(session: Session) -> None:
    schema, label = session.target.schema, session.target.label
    lock = int.from_bytes(hashlib.sha256(f"timbal {schema}".encode()).digest()[:8], "big", signed=True)
    session.script("BEGIN")
    try:
        session.script(f"SELECT pg_advisory_xact_lock({lock})")
        version = _version(session)
        if version == 0:
            if not session.script(f"SELECT FROM pg_namespace WHERE nspname = '{schema}'"):
                session.script(f'CREATE SCHEMA "{schema}"')  # IF NOT EXISTS would need rights even where it does
            session.script(
                f'CREATE TABLE "{schema}".timbal_version (version integer NOT NULL);'
                f'INSERT INTO "{schema}".timbal_version VALUES (0)'
            )
        session.script(f'SET LOCAL search_path TO "{schema}"')
        for number in range(version + 1, VERSION + 1):
            session.script(Path(__file__).with_name(f"postgres_{number:04}.sql").read_text())
            session.script(f"UPDATE timbal_version SET version = {number}")
        session.script("COMMIT")
    except Refused as refusal:
        session.script("ROLLBACK")
        if refusal.code != "42501":
            raise
        raise StoreError(
            f"{label}: this role may not make the tables. Let an administrator run "
            f'CREATE SCHEMA "{schema}" AUTHORIZATION <role>, or choose a schema of your own with ?schema=name. '
            "Nothing was touched"
        ) from refusal
    except StoreError:
        session.script("ROLLBACK")
        raise


#: `full` keeps what the server is set to (replicas included), unless that is to report commits before they are durable.
_SYNCHRONOUS = {
    "full": "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';",
    "normal": "SET synchronous_commit TO off;",
}


_ANY = (
    "SET default_transaction_isolation TO 'read committed'; SET jit TO off; SET client_min_messages TO error;"
    "SET idle_in_transaction_session_timeout TO '10s';"
)


def set_up_reader(session: Session, statements: Sequence[Statement]) -> None:
    """Make a session ready to read; `statements` are planned now, not when first used."""
    session.script(f'SET search_path TO "{session.target.schema}";{_ANY}')
    session.prepare(statements)


def set_up_writer(session: Session, synchronous: str, statements: Sequence[Statement]) -> None:
    """Make a session ready to write and to hear from others; `statements` are planned now, for any values."""
    schema = session.target.schema
    session.script(
        f'SET search_path TO "{schema}"; LISTEN "{schema}";{_ANY}'
        "SET lock_timeout TO '10s'; SET plan_cache_mode TO force_generic_plan;" + _SYNCHRONOUS[synchronous]
    )
    session.prepare(statements)
