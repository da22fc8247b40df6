"""`timbal grants`: the decisions that stand for a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..stores import clock
from ..terminal import command, plain_json
from ..types.approval import Principal
from .errors import DONE, FAILED, CliError
from .listing import Where, store_to_read
from .places import record_of
from .screen import Screen
from .words import ago, as_json, moment, who

if TYPE_CHECKING:
    from ..core.grants import Grant
    from ..stores.base import BaseStore


def grants(run_id: str, revoke: Sequence[str], where: Where, by: Principal, json: bool) -> int:
    """List them, with those of these ids revoked first."""
    screen = Screen()
    store = store_to_read(where)
    if store is None:
        raise CliError(f"there is no run {run_id}: nothing was kept in this folder yet", hint="--store names a store.")
    run_id, found = asyncio.run(_revoked(store, run_id, revoke, by))
    now = clock.now()
    if json:
        screen.raw(plain_json(as_json({"items": [_as_dict(grant, now) for grant in found]})))
        return DONE
    for grant in found:
        _show(screen, grant, now)
        if grant.holds(now):
            screen.copyable(command("grants", run_id, "--revoke", grant.id[:12], *where.words))
        screen.listing()
    if not found:
        screen.listing("No decision stands for this conversation.")
    return DONE


async def _revoked(store: BaseStore, given: str, revoke: Sequence[str], by: Principal) -> tuple[str, Sequence[Grant]]:
    """The full id of the run, and its grants after these were revoked."""
    run_id = (await record_of(store, given)).info.run_id
    try:
        known = await store.grants(run_id)
        for id in [_full_id(known, id) for id in revoke]:
            await store.revoke(run_id, id, by)
        return run_id, await store.grants(run_id) if revoke else known
    except StoreError as problem:
        raise CliError(str(problem), code=FAILED) from None


def _full_id(known: Sequence[Grant], given: str) -> str:
    found = {grant.id for grant in known if given and grant.id.startswith(given.lower())}
    if len(found) != 1:
        what = f"no standing decision begins with {given!r}" if not found else f"several begin with {given!r}"
        ids = ", ".join(f"{grant.id[:12]} ({grant.path})" for grant in known)
        raise CliError(what, hint=f"There are: {ids}." if ids else "", code=FAILED)
    return found.pop()


def _show(screen: Screen, grant: Grant, now: int) -> None:
    """What it decides, who made it, and whether it holds."""
    what = "approved" if grant.approved else "denied"
    screen.listing(f"{grant.path} is {what} in this conversation", "bold" if grant.holds(now) else "dim")
    uses = str(len(grant.uses)) if grant.max_uses is None else f"{len(grant.uses)} of {grant.max_uses}"
    parts = [f"by {who(grant.by)} {ago(grant.granted_at, now)}", f"used {uses} times"]
    if grant.expires_at is not None:
        parts.append(f"until {moment(grant.expires_at)}")
    screen.listing(" · ".join(parts), "dim", indent=1)
    if grant.reason:
        screen.listing(grant.reason, indent=1)
    if not grant.holds(now):
        screen.listing(_why_over(grant, now), "yellow", indent=1)


def _why_over(grant: Grant, now: int) -> str:
    if grant.revoked_at is not None:
        return f"It was revoked by {who(grant.revoked_by)} {ago(grant.revoked_at, now)}."
    if grant.expires_at is not None and grant.expires_at <= now:
        return "It has expired."
    return "It is used up."


def _as_dict(grant: Grant, now: int) -> dict[str, Any]:
    return {**grant._asdict(), "uses": [use._asdict() for use in grant.uses], "holds": grant.holds(now)}
