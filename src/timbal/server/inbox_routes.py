"""The inbox: what waits for a person, live, and the door where answers come in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from starlette.responses import Response

from ..core.codec import decode_all
from ..core.ledger import Ledger, Question
from ..errors import ResumeRejected, RunNotFound
from ..stores.listings import PendingItem, SettledItem
from ..stores.waiting import wait
from ..types.value import fields_of
from . import sse
from .access import is_admin
from .bodies import read_object
from .endpoints import Call, json_response
from .items import audience_of, pending_json, pending_of, settled_news, settled_of
from .problems import Problem, answer_errors, rejected
from .records import info_json
from .service import CHANNEL, SUBJECT, key_of
from .streaming import EventStream

if TYPE_CHECKING:
    from ..types.events import ApprovalEvent, InteractionEvent

#: The most items of one part of a snapshot.
PART = 200


def _visible(call: Call, labels: dict[str, str], event: InteractionEvent | ApprovalEvent) -> bool:
    """Whether an item is one for whoever asks: their own run's, or one that they may answer."""
    by = call.by
    if by is None or is_admin(by) or labels.get(SUBJECT) == by.sub:
        return True
    return "answer" in by.roles and by.matches(audience_of(event))


async def listing(call: Call) -> Response:
    """`GET /pending`; a page holds fewer items than its limit where some are for others only."""
    query = call.request.query_params
    labels = {**call.labels(), **_own(call)}
    try:
        page = await call.service.store.pending(query.get("runnable"), query.get("kind"), labels, **call.page())
    except ValueError as error:
        raise Problem(422, str(error), errors=[{"pointer": "/after", "message": "this is no position"}]) from None
    items = [pending_json(item) for item in page.items if _visible(call, item.labels, item.event)]
    return json_response({"items": items, "next": page.next})


def _own(call: Call) -> dict[str, str]:
    """Those who may not answer for others see the items of their own runs."""
    by = call.by
    return {} if by is None or {"answer", "admin"} & set(by.roles) else {SUBJECT: by.sub}


async def live(call: Call) -> Response:
    """`GET /pending/stream`: a snapshot in parts, then what is opened and settled."""
    labels = {**call.labels(), **_own(call)}
    return EventStream(_news(call, labels), call.service.limits.slow_reader)


async def _news(call: Call, labels: dict[str, str]) -> AsyncGenerator[bytes, None]:
    service, query = call.service, call.request.query_params
    runnable, kind = query.get("runnable"), query.get("kind")

    def wanted(item: PendingItem | SettledItem) -> bool:
        return (
            (runnable is None or item.runnable == runnable)
            and (kind is None or item.kind == kind)
            and labels.items() <= item.labels.items()
            and _visible(call, item.labels, item.event)
        )

    shown: set[tuple[str, str]] = set()
    with service.inbox.listen() as queue:
        await service.inbox.ready()
        after = None
        while True:
            page = await service.store.pending(runnable, kind, labels, after=after, limit=PART)
            items = [item for item in page.items if wanted(item)]
            shown.update((item.run_id, item.id) for item in items)
            part = {"items": [pending_json(item) for item in items], "complete": page.next is None}
            yield _frame("snapshot", part)
            if (after := page.next) is None:
                break
        while not service.stopping:
            item: PendingItem | SettledItem | None = None
            with suppress(TimeoutError):
                item = await asyncio.wait_for(queue.get(), service.limits.heartbeat)
            if item is None:
                yield sse.HEARTBEAT
            elif isinstance(item, SettledItem):
                if wanted(item):
                    shown.discard((item.run_id, item.id))
                    yield _frame("settled", settled_news(item))
            elif wanted(item) and (item.run_id, item.id) not in shown:
                shown.add((item.run_id, item.id))
                yield _frame("opened", pending_json(item))


def _frame(name: str, content: Any) -> bytes:
    return sse.named(name, to_json(content, fallback=fields_of).decode())


async def _find(call: Call) -> tuple[Ledger, Question]:
    """The item that the address names; raises `Problem`."""
    run_id, id = call.request.path_params["run_id"], call.request.path_params["id"]
    stored = await wait(call.service.store.load(run_id))
    ledger = Ledger.of(decode_all(stored.records)) if stored is not None else Ledger()
    question = ledger.questions.get(id)
    if question is None:
        raise Problem(404, f"run {run_id} has asked no {id}")
    labels = ledger.root.labels or {}
    by = call.by
    if by is not None and not _visible(call, labels, pending_of(ledger, question)["event"]):
        if "answer" not in by.roles:
            raise Problem(404, f"run {run_id} has asked no {id}")
        raise Problem(403, f"{id} is not for {by.sub}: its audience is another")
    return ledger, question


async def item(call: Call) -> Response:
    """`GET /pending/{run_id}/{id}`: one item with its record, settled ones too."""
    ledger, question = await _find(call)
    _, runs = await call.service.info(ledger.root.run_id)
    state = "pending" if question.settled is None else question.settled.state
    told = {"state": state, "settled": settled_of(question), "runs": [info_json(info) for info in runs]}
    return json_response({**pending_of(ledger, question), **told})


async def answer(call: Call) -> Response:
    """`POST /pending/{run_id}/{id}`: settle it; the run goes on in the background."""
    service = call.service
    ledger, question = await _find(call)
    body = await read_object(call.request, service.limits.body)
    if body.keys() != {"value"}:
        message = (
            "the body is {value}: the answer" if "value" not in body else "the body holds the value and nothing else"
        )
        raise Problem(422, message, errors=[{"pointer": "/value", "message": message}])
    id = question.asked.id
    given = call.request.headers.get("idempotency-key")
    key = key_of(call.by, given) if given else None
    try:
        told, follows = await _settle(call, ledger, id, body["value"], key)
    except Problem as problem:
        if problem.receipts is not None and await _is_of(call, key):
            raise Problem(422, f"this Idempotency-Key came with another answer to {id} before") from None
        raise _of_answer(problem) from None
    if "ignored" in told:
        raise Problem(422, f"the decision about {id} was over before it came: {told['why']}", receipts=[told])
    if told["state"] == "already_settled" and await _is_of(call, key):
        told = {**told, "state": "accepted"}
    next_run_id = told["run_id"] or follows
    headers = {"X-Run-Id": next_run_id, "Location": f"../../runs/{next_run_id}"} if next_run_id else {}
    return json_response({"receipts": [told], "next_run_id": next_run_id}, 202, headers)


async def _settle(
    call: Call, ledger: Ledger, id: str, value: Any, key: str | None
) -> tuple[Mapping[str, Any], str | None]:
    """Give the answer; gives its receipt, and the run that goes on here. Raises `Problem`."""
    service, run_id = call.service, ledger.root.run_id
    runnable = service.runnables.get(ledger.root.name)
    if runnable is not None:
        recording = await service.resume(runnable, run_id, {id: value}, call.by, key)
        return recording.receipts[0], recording.gives
    try:  # a server that has it goes on
        receipts = await service.store.answer(run_id, {id: value}, call.by, CHANNEL, key)
    except RunNotFound as error:
        raise Problem(404, str(error)) from None
    except ResumeRejected as refused:
        raise rejected(str(refused), refused.receipts) from None
    await service.log.announce()
    return receipts[0], None


async def _is_of(call: Call, key: str | None) -> bool:
    """Whether the item was settled by this request, when it came before."""
    if key is None:
        return False
    _, question = await _find(call)
    return question.settled is not None and question.settled.key == key


def _of_answer(problem: Problem) -> Problem:
    """The same problem with pointers into `{value}`."""
    if problem.receipts is not None:
        problem.errors = answer_errors(problem.receipts, "/value")
    return problem
