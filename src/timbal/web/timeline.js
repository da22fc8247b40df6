// Times and states in words, and what happened in a run, in order.

import { now } from "./context.js";
import { data, fields, text } from "./data.js";
import { Part, props } from "./part.js";
import { html, nothing } from "./vendor/lit.js";

/** @param {number} ms */
export function took(ms) {
  if (ms < 950) return `${Math.max(Math.round(ms), 1)} ms`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${ms < 9500 ? (ms / 1000).toFixed(1) : s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return s < 86400 ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min` : `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A moment, without what goes without saying. @param {number} at */
export function moment(at) {
  const day = new Date(at).toDateString() === new Date().toDateString() ? undefined : /** @type {const} */ ("medium");
  return html`<time datetime=${new Date(at).toISOString()}>${new Date(at).toLocaleString(undefined, { dateStyle: day, timeStyle: "short" })}</time>`;
}

/** How long something lasts already. */
class TimbalClock extends Part {
  static properties = props("since");
  /** @type {any} */
  #timer;

  constructor() {
    super();
    this.since = 0;
  }

  connectedCallback() {
    super.connectedCallback();
    this.#timer = setInterval(() => this.requestUpdate(), 1000);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearInterval(this.#timer);
  }

  render() {
    const ms = now() - this.since;
    return ms < 1000 ? "" : took(ms - (ms % 1000)).replace(".0", "");
  }
}

customElements.define("timbal-clock", TimbalClock);

/** @type {Record<string, [string, string]>} */
const STATES = {
  running: ["running", "accent"], paused: ["waits for an answer", "warn"], parked: ["stuck", "bad"], success: ["done", "good"], error: ["failed", "bad"],
  cancelled: ["stopped", "muted"], erased: ["erased", "muted"],
};

/** @param {string} status */
export const stateTag = (status) => html`<span class="tag ${STATES[status]?.[1]}">${STATES[status]?.[0] ?? status}</span>`;
export const statuses = Object.entries(STATES).map(([status, [words]]) => /** @type {const} */ ([status, words]));

/** Who answered, and how. @param {any} entry */
const by = ({ by, channel }) => [by ? html` by ${text(by.sub)}` : nothing, channel ? html` <span class="muted">(${channel})</span>` : nothing];

/** @type {Record<string, string>} */
const SETTLED = { cancelled: "Cancelled", expired: "Nobody answered in time", superseded: "Left open: a new message came" };
/** @type {Record<string, string>} */
const ENDS = { success: "Finished", paused: "Paused until somebody answers", error: "Failed", cancelled: "Stopped" };

/** @param {any} entry @returns {[unknown, ...unknown[]]} Its line, and what is below it. */
function words(entry) {
  const { what, name, kind, status, value, error, given, id } = entry;
  switch (what) {
    case "started":
      return [html`Started${by(entry)}`, fields(given)];
    case "resumed":
      return ["Went on"];
    case "call":
      return [html`<b>${kind === "model" ? "Model" : text(name)}</b> ${status === "open" ? html`<span class="warn">not finished</span>` : error || status === "approval_denied" ? html`<span class="bad">${status === "error" ? "failed" : "denied"}</span>` : nothing}`, given && fields(given), error ? text(error) : value !== null && value !== "" && data(value)];
    case "question":
    case "gate":
      return [html`${what === "gate" ? "Asked for approval" : "Asked"}: ${text(entry.prompt ?? given?.question ?? given?.action ?? kind)}`, html`<a href="#/inbox/${entry.run}/${id}">Open the question</a>`];
    case "settled":
    case "decided":
      return [html`${SETTLED[status] ?? (what === "settled" ? "Answered" : (value?.approved ?? value) === true ? "Approved" : "Denied")}${by(entry)}`, value !== null && data(value)];
    case "passed":
      return ["Allowed by an earlier decision"];
    case "revoked":
      return [html`Permission taken back${by(entry)}`];
    case "note":
      return ["The answer was not in the form that was asked for", text(value)];
    default:
      return [ENDS[status.split(" / ")[0]] ?? status, error && text(error), value !== null && data(value)];
  }
}

/** @param {any} record */
export function timeline(record) {
  const run = record.runs[0].run_id;
  const most = Math.max(1, ...record.timeline.map((/** @type {any} */ entry) => entry.took ?? entry.waited ?? 0));
  return html`<ol class="timeline">${record.timeline.map((/** @type {any} */ entry) => {
    const [line, ...below] = words({ ...entry, run });
    const shown = below.filter(Boolean);
    const ms = entry.took ?? entry.waited;
    const head = html`<span class="what">${line}</span>${ms === null ? nothing : html`<meter min="0" max=${most} value=${ms} aria-hidden="true"></meter><span class="muted">${entry.what === "call" ? "" : "after "}${took(ms)}</span>`}`;
    return html`<li class="deep${Math.min(entry.depth, 5)}"><span class="muted at">${new Date(entry.at).toLocaleTimeString()}</span>
      ${shown.length ? html`<details><summary>${head}</summary>${shown.map((one) => html`<div>${one}</div>`)}</details>` : html`<div class="row">${head}</div>`}</li>`;
  })}</ol>`;
}
