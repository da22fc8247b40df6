// The events that real runs have told, and their records, come to the same transcript.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const { eventsOf, newTurn, told } = await import(process.env.TIMBAL_WEB + "/transcript.js");
const recorded = JSON.parse(readFileSync(process.env.TIMBAL_RECORDED, "utf-8"));

const outline = (call, depth = "") => [
  `${depth}${call.name} ${call.state}`,
  ...call.parts.flatMap((part) => (part.call ? outline(part.call, `${depth}  `) : part.type === "text" ? [`${depth}  "${part.text}"`] : part.type === "question" ? [`${depth}  ?`] : [])),
];
const tell = (turn, events) => events.reduce(told, turn);
const all = tell(newTurn("x"), recorded.runs.flat());

test("a run that waits shows each call with its state, and each question at its call", () => {
  assert.deepEqual(outline(tell(newTurn("x"), recorded.runs[0]).root), [
    "assistant waiting", "  llm done", "  look_up done", "  print_label failed", "  confirm waiting", "    ?", "  pay waiting", "    ?",
    "  researcher waiting", "    llm done", "    look_up done", "    ask_user waiting", "      ?",
  ]);
});

test("the runs that go on add what is new, and nothing twice", () => {
  const lines = outline(all.root);
  assert.equal(lines[0], "assistant done");
  assert.deepEqual(lines.filter((line) => /^ {2}\w/.test(line)), ["  llm done", "  look_up done", "  print_label failed", "  confirm done", "  pay denied", "  researcher done", "  llm done"]);
  assert.equal(lines.filter((line) => line.endsWith("?")).length, 3);
  assert.deepEqual(outline(tell(all, recorded.runs.flat()).root), lines);
});

test("a record alone comes to the same, and adds nothing to what the events have told", () => {
  assert.deepEqual(outline(tell(newTurn("x"), eventsOf(recorded.record)).root), outline(all.root));
  assert.deepEqual(outline(tell(all, eventsOf(recorded.record)).root), outline(all.root));
  const half = tell(newTurn("x"), recorded.runs[0]);
  assert.deepEqual(outline(tell(half, eventsOf(recorded.record)).root), outline(all.root));
});

test("a record takes nothing away from what the events have told", () => {
  const thought = { role: "assistant", content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "well" }] };
  const events = recorded.runs[0].map((event) => (event.path.endsWith(".llm") && event.type === "OUTPUT" ? { ...event, output: thought } : event));
  const { root } = tell(tell(newTurn("x"), events), eventsOf(recorded.record));
  assert.deepEqual(root.parts[0].call.parts.map(({ type, text }) => [type, text]), [["thinking", "hm"], ["text", "well"]]);
});

test("a record says what was answered", () => {
  const { questions } = tell(newTurn("x"), eventsOf(recorded.record));
  assert.deepEqual([...questions.values()].map(({ settled }) => settled.state), ["answered", "answered", "answered"]);
  assert.ok([...questions.values()].some(({ settled }) => settled.value === "Europe"));
});

test("what became of a question may be known before it is asked, and an event that is told again changes nothing", () => {
  const outcomes = eventsOf(recorded.record).filter(({ type }) => type === "SETTLED");
  const turn = tell(newTurn("x"), [...outcomes, ...recorded.runs[0]]);
  assert.ok([...turn.questions.values()].every(({ event, settled }) => event && settled));
  const asked = recorded.runs[0].find(({ type }) => type === "INTERACTION");
  const open = tell(newTurn("x"), recorded.runs[0]);
  assert.equal(told(open, asked), open);
});

test("text comes in pieces, and what did not change is the same object", () => {
  const events = recorded.runs[0];
  const n = events.findIndex((event) => event.path.endsWith("researcher") && event.type === "START");
  const before = tell(newTurn("x"), events.slice(0, n));
  const after = told(before, events[n]);
  assert.notEqual(after.root, before.root);
  before.root.parts.forEach((part, i) => assert.equal(after.root.parts[i], part));
  assert.equal(after.questions, before.questions);
});

test("a reply that broke off with its process is asked for again", () => {
  const [root, model] = recorded.runs[0];
  const piece = { ...model, type: "DELTA", item: { id: "a", type: "text_delta", text_delta: "half" } };
  const half = tell(newTurn("x"), [root, model, piece, { ...piece, item: { ...piece.item, text_delta: " of it" } }]);
  assert.deepEqual(outline(half.root), ["assistant running", "  llm running", '    "half of it"']);
  const again = recorded.runs[0].map((event) => (event.call_id === model.call_id ? { ...event, call_id: "another" } : event));
  assert.deepEqual(outline(tell(half, again).root), outline(tell(newTurn("x"), recorded.runs[0]).root));
});

test("what it does not know changes nothing", () => {
  for (const event of [{ type: "NEWS" }, { type: "DELTA", call_id: "?", item: {} }, { type: "OUTPUT", call_id: "?", parent_call_id: "?", status: { code: "success" } }])
    assert.equal(told(all, event), all);
});
