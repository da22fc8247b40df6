// What the events of a conversation's turn come to. Pure: a turn and an event make a turn, and what did not change stays the same object.

/**
 * @typedef {"running" | "waiting" | "done" | "failed" | "denied" | "cancelled" | "stopped"} State
 * @typedef {{type: "text" | "thinking" | "tool_use" | "custom" | "question" | "call", [field: string]: any}} Part
 * @typedef {{id: string, name: string, kind: string, input: any, state: State, since: number, took: number | null, output: any, error: string | null, parts: Part[]}} Call
 * @typedef {{id: string, event: any, settled: any}} Question
 * @typedef {{run: string, root: Call | null, parents: Map<string, string>, questions: Map<string, Question>, status: any}} Turn
 */

/** One turn: an execution, by the id of its first run. @param {string} run @returns {Turn} */
export const newTurn = (run) => ({ run, root: null, parents: new Map(), questions: new Map(), status: null });

/** @param {any} event @returns {Call} */
const newCall = ({ call_id, runnable_name, runnable_type, input, t0 }) => ({
  id: call_id, name: runnable_name, kind: runnable_name === "llm" ? "model" : runnable_type, input, state: "running", since: t0, took: null, output: null, error: null, parts: [],
});

/** @param {Turn} turn @param {any} event @returns {Turn} */
export function told(turn, event) {
  switch (event.type) {
    case "START":
      return started(turn, event);
    case "DELTA":
      return change(turn, event.call_id, (call) => delta(call, event.item));
    case "INTERACTION":
    case "APPROVAL":
      return asked(turn, event);
    case "OUTPUT":
      return ended(turn, event);
    case "SETTLED":
      return settle(turn, event);
    default:
      return turn;
  }
}

/** @param {Turn} turn @param {any} event @returns {Turn} */
function started(turn, event) {
  const { call_id: id, parent_call_id: parent } = event;
  /** @param {Call} call @returns {Call} */
  const again = (call) => (call.kind === "model" ? call : { ...call, state: "running", since: event.t0, took: null, error: null });
  if (!parent) return { ...turn, status: null, root: turn.root ? again(withoutHalves(turn.root)) : newCall(event) };
  if (turn.parents.has(id)) return change(turn, id, again);
  const next = change(turn, parent, (call) => ({ ...call, parts: [...call.parts, { type: "call", call: newCall(event) }] }));
  return { ...next, parents: new Map(next.parents).set(id, parent) };
}

/** Without replies that broke off with their process: another run asks the model again. @param {Call} call @returns {Call} */
function withoutHalves(call) {
  const parts = call.parts.filter((part) => part.call?.kind !== "model" || part.call.state !== "running");
  return { ...call, parts: parts.map((part) => (part.call ? { ...part, call: withoutHalves(part.call) } : part)) };
}

/** @param {Call} call @param {any} item @returns {Call} */
function delta(call, item) {
  const { id, type } = item;
  const last = call.parts.at(-1);
  if (call.kind === "model" && call.state !== "running") return call;
  if (type === "tool_use" || type === "custom") return { ...call, parts: [...call.parts, { id, type, name: item.name, data: item.data }] };
  const text = type === "text_delta" || type === "thinking_delta" ? item[type] : null;
  if (text === null) return call;
  const kind = type === "text_delta" ? "text" : "thinking";
  if (last?.type !== kind || last.id !== id) return { ...call, parts: [...call.parts, { id, type: kind, text }] };
  return { ...call, parts: [...call.parts.slice(0, -1), { ...last, text: last.text + text }] };
}

/** A question is asked once, or again after it was settled; what became of it may be known before. @param {Turn} turn @param {any} event @returns {Turn} */
function asked(turn, event) {
  const id = event.interaction_id ?? event.approval_id;
  const known = turn.questions.get(id);
  if (known?.event && (!known.settled || !event.run_id)) return turn;
  const questions = new Map(turn.questions).set(id, { id, event, settled: known?.event ? null : (known?.settled ?? null) });
  const next = { ...turn, questions };
  return known?.event ? next : change(next, event.call_id, (call) => ({ ...call, parts: [...call.parts, { type: "question", id }] }));
}

/** @param {Turn} turn @param {any} settled @returns {Turn} */
function settle(turn, settled) {
  const known = turn.questions.get(settled.id);
  return known?.settled ? turn : { ...turn, questions: new Map(turn.questions).set(settled.id, { id: settled.id, event: null, ...known, settled }) };
}

/** @param {Turn} turn @param {any} event @returns {Turn} */
function ended(turn, event) {
  const { status, output, error, t0, t1 } = event;
  const state = stateOf(status);
  const next = change(turn, event.call_id, (call) => {
    if (call.kind === "model" && call.state === "done") return call;
    const parts = call.kind === "model" && output ? partsOf(output) : call.parts;
    return { ...call, parts, state, took: t1 - t0, output, error: error?.message ?? (state === "done" ? null : status.message) };
  });
  if (event.parent_call_id) return next;
  return { ...next, status, root: next.root && atRest(next.root, state === "waiting" ? "waiting" : "stopped") };
}

/** @param {any} message @returns {Part[]} */
const partsOf = (message) => message.content.flatMap((/** @type {any} */ part) => (part.text || part.thinking ? [{ type: part.type, text: part[part.type] }] : []));

/** Nothing runs in a turn that has ended. @param {Call} call @param {State} state @returns {Call} */
function atRest(call, state) {
  const parts = call.parts.map((part) => (part.call ? { ...part, call: atRest(part.call, state) } : part));
  const same = parts.every((part, i) => part.call === call.parts[i]?.call);
  const now = call.state === "running" ? state : call.state;
  return same && now === call.state ? call : { ...call, state: now, parts: same ? call.parts : parts };
}

/** @param {{code: string, reason: string | null}} status @returns {State} */
function stateOf({ code, reason }) {
  if (code === "success") return "done";
  if (code === "error") return "failed";
  if (reason === "input_required" || reason === "approval_required") return "waiting";
  return reason === "approval_denied" ? "denied" : reason === "interrupted" ? "stopped" : "cancelled";
}

/** @param {Turn} turn @param {string} id @param {(call: Call) => Call} make @returns {Turn} */
function change(turn, id, make) {
  if (!turn.root) return turn;
  const path = new Set();
  for (let at = id; at !== turn.root.id; at = turn.parents.get(at) ?? "") {
    if (!turn.parents.has(at)) return turn;
    path.add(at);
  }
  /** @param {Call} call @returns {Call} */
  const within = (call) =>
    call.id === id ? make(call) : { ...call, parts: call.parts.map((part) => (path.has(part.call?.id) ? { ...part, call: within(part.call) } : part)) };
  return { ...turn, root: within(turn.root) };
}

/** The events that a run's record stands for, where they were not kept: without pieces and progress. @param {any} record @returns {any[]} */
export function eventsOf(record) {
  const root = record.timeline[0].call_id;
  const pending = new Map(record.pending.map((/** @type {any} */ item) => [item.id, item.event]));
  return record.timeline.flatMap((/** @type {any} */ entry) => {
    const { what, at, name, kind, given, call_id, parent_call_id } = entry;
    const start = { type: "START", call_id, parent_call_id, runnable_name: kind === "model" ? "llm" : name, runnable_type: kind, input: given, t0: at };
    switch (what) {
      case "started":
        return [start];
      case "resumed":
        return [{ ...start, call_id: root, runnable_name: record.runnable, input: record.input }];
      case "call":
        return kind === "step" ? [] : entry.status === "open" ? [start] : [start, outputOf(entry)];
      case "question":
      case "gate": {
        const id = what === "gate" ? { type: "APPROVAL", approval_id: entry.id, input: given, prompt: entry.prompt } : { type: "INTERACTION", interaction_id: entry.id, payload: given };
        return [pending.get(entry.id) ?? { ...id, call_id, kind, runnable_name: name, runnable_path: name, t0: at }];
      }
      case "settled":
      case "decided":
        return [{ ...entry, type: "SETTLED", state: entry.status }];
      case "ended":
        return [{ ...outputOf({ ...entry, call_id: root, at: record.timeline[0].at, took: at - record.timeline[0].at }), output: entry.value ?? record.output }];
      default:
        return [];
    }
  });
}

/** @param {any} entry */
function outputOf({ kind, call_id, parent_call_id, status, value, error, at, took }) {
  const output = kind === "model" ? { content: [{ type: "text", text: value ?? "" }] } : value;
  const failed = status.startsWith("error");
  return { type: "OUTPUT", call_id, parent_call_id, status: { ...statusOf(status), message: error }, output: failed ? null : output, error: failed ? { message: error } : null, t0: at, t1: at + (took ?? 0) };
}

/** @param {string} told */
function statusOf(told) {
  const [code = "", reason = null] = told.split(" / ");
  if (code === "paused") return { code: "cancelled", reason: "input_required" };
  if (code === "success" || code === "error" || code === "cancelled") return { code, reason };
  return { code: code === "approval_denied" || code === "interrupted" ? "cancelled" : "success", reason: code };
}
