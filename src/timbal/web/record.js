// What is known of an item besides its question: who asked and when, until when, and what became of it.

import { may, served } from "./context.js";
import { brief, changes, data, rows, seen, text } from "./data.js";
import { date, since } from "./time.js";
import { html, nothing } from "./vendor/lit.js";

/** @typedef {import("./client.js").PendingItem & {settled?: Outcome | null}} Item */
/** @typedef {{state: string, value?: any, by?: {sub: string} | null, at?: number | null, channel?: string | null, next_run_id?: string | null}} Outcome */

const KINDS = new Map(Object.entries({ ask_user: "Question", ask_user_multi: "Choice", confirm: "Yes or no", approval: "Approval", suspend: "Question" }));
/** @param {string} kind */
export const nameOf = (kind) => KINDS.get(kind) ?? seen(kind);

/** The question itself, if it is a text. @param {any} payload @returns {[string?, string?]} Its name and its words. */
export function questionOf(payload) {
  const name = ["question", "action", "prompt", "message"].find((one) => typeof payload[one] === "string");
  return name ? [name, payload[name]] : [];
}

/** The question in a line. @param {any} event */
export function lineOf({ payload, prompt, runnable_name: name }) {
  const line = payload ? (questionOf(payload)[1] ?? brief(payload)) : (prompt ?? `May ${name} run?`);
  return line.slice(0, 200);
}

/** @param {Item} item */
export const labelsOf = (item) => Object.entries(item.labels).map(([name, value]) => `${name}=${value}`);

/** Who may answer, where not everybody may. @param {any} event @returns {string[] | null} */
const audienceOf = (event) => event.audience ?? event.metadata?.approval?.audience ?? null;

/** @param {any} event */
const forWhom = (event) => audienceOf(event)?.map((one) => one.replace(/^role:/, "the role ").replace(/^user:/, "")).join(" or ");

/** Why this person can't answer, or `null`. @param {any} event */
export function refusalOf(event) {
  const audience = audienceOf(event), { by } = served;
  if (!audience || (by && [`user:${by.sub}`, ...by.roles.map((role) => `role:${role}`)].some((one) => audience.includes(one)))) return null;
  const why = by ? `You are signed in as ${by.sub}: you can read it, but not answer.` : "This server does not ask who you are, so it can't be answered here.";
  return html`This is for ${text(forWhom(event))}. ${why}`;
}

/** @type {Record<string, string>} */
const WAYS = { http: "on the web", resume: "from a program", terminal: "in a terminal", "command line": "on the command line" };

/** Who answered, and how. @param {Pick<Outcome, "by" | "channel">} outcome */
export const byWhom = ({ by, channel }) => html`${by ? html` by ${by.sub === served.by?.sub ? "you" : text(by.sub)}` : nothing}${channel ? ` ${WAYS[channel] ?? `by ${channel}`}` : nothing}`;

/** @type {Record<string, string>} */
const ENDS = {
  expired: "The time for this is over, so it can't be answered any more.",
  superseded: "Somebody sent a new message instead, so this needs no answer any more.",
  cancelled: "The run was cancelled, so this needs no answer any more.",
};

/** What a person said, in words. @param {any} event @param {any} value */
function said(event, value) {
  if (event.type !== "APPROVAL") return typeof value === "boolean" ? (value ? "Yes" : "No") : data(value);
  const { approved, reason, comment, scope, override_input: edit } = typeof value === "object" ? value : { approved: value };
  const more = { Reason: reason && text(reason), Comment: comment && text(comment), "Also for": scope && "later calls in this conversation, too" };
  return html`${approved ? (edit ? "Approved with changes" : "Approved") : "Denied"}${rows(Object.entries(more))}${edit ? changes(event.input, { ...event.input, ...edit }) : nothing}`;
}

/** What became of an item. @param {any} event @param {Outcome} outcome @param {string} lead */
export function outcomeOf(event, outcome, lead) {
  const answered = outcome.state === "answered";
  return html`<div class="outcome ${answered ? "answered" : ""}" role="status">
    <p>${answered ? html`${lead}${byWhom(outcome)}` : (ENDS[outcome.state] ?? "This was settled meanwhile.")}${outcome.at ? html` <span class="muted">· ${since(outcome.at)}</span>` : nothing}</p>
    ${answered && "value" in outcome ? html`<div class="said">${said(event, outcome.value)}</div>` : nothing}
  </div>`;
}

/** @param {Item} item @param {Outcome | null} outcome */
export function recordOf(item, outcome) {
  const { event } = item;
  return html`<details class="record">
    <summary>Record</summary>
    ${rows([
      ["Asked", html`${date(item.asked_at)} by ${text(event.runnable_path)}`],
      ["Where", may("run") && html`<a href="#/chat/${item.run_id}?item=${item.id}">See it in its run</a>`],
      ["Tool call", event.tool_call_id && text(event.tool_call_id)],
      ["Labels", labelsOf(item).length && data(labelsOf(item))],
      ["Only for", forWhom(event)],
      ["Time limit", item.expires_at && date(item.expires_at)],
      ["Settled", outcome?.at && html`${date(outcome.at)}${byWhom(outcome)}`],
      ["Then", may("run") && outcome?.next_run_id && html`<a href="#/chat/${outcome.next_run_id}">The run that went on</a>`],
    ])}
  </details>`;
}
