// States in words, and what happened in a run, in order.

import { data, fields, text } from "./data.js";
import { byWhom, lineOf } from "./record.js";
import { took } from "./time.js";
import { html, nothing } from "./vendor/lit.js";

/** @type {Record<string, [string, string]>} */
const STATES = {
  running: ["running", "accent"], paused: ["waits for an answer", "warn"], parked: ["stuck", "bad"], success: ["done", "good"], error: ["failed", "bad"],
  cancelled: ["stopped", "muted"], erased: ["erased", "muted"],
};

/** @param {string} status */
export const stateTag = (status) => html`<span class="tag ${STATES[status]?.[1]}">${STATES[status]?.[0] ?? status}</span>`;
export const statuses = Object.entries(STATES).map(([status, [words]]) => /** @type {const} */ ([status, words]));

/** @type {Record<string, string>} */
const SETTLED = { cancelled: "Cancelled", expired: "Nobody answered in time", superseded: "Left open: a new message came" };
/** @type {Record<string, string>} */
const ENDS = { success: "Finished", paused: "Paused until somebody answers", error: "Failed", cancelled: "Stopped" };

/** @param {any} entry @returns {[unknown, ...unknown[]]} Its line, and what is below it. */
function words(entry) {
  const { what, name, kind, status, value, error, given, id } = entry;
  switch (what) {
    case "started":
      return [html`Started${byWhom(entry)}`, fields(given)];
    case "resumed":
      return ["Went on"];
    case "call":
      return [html`<b>${kind === "model" ? "Model" : text(name)}</b> ${status === "open" ? html`<span class="warn">not finished</span>` : error || status === "approval_denied" ? html`<span class="bad">${status === "error" ? "failed" : "denied"}</span>` : nothing}`, given && fields(given), error ? text(error) : value !== null && value !== "" && data(value)];
    case "question":
    case "gate":
      return [html`${what === "gate" ? "Asked for approval" : "Asked"}: ${text(lineOf({ ...entry, payload: what === "question" && given, runnable_name: name }))}`, html`<a href="#/inbox/${entry.run}/${id}">Open the question</a>`];
    case "settled":
    case "decided":
      return [html`${SETTLED[status] ?? (what === "settled" ? "Answered" : (value?.approved ?? value) === true ? "Approved" : "Denied")}${byWhom(entry)}`, value !== null && data(value)];
    case "passed":
      return ["Allowed by an earlier decision"];
    case "revoked":
      return [html`Permission taken back${byWhom(entry)}`];
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
    return html`<li class="deep${Math.min(entry.depth, 4)}"><span class="muted at">${new Date(entry.at).toLocaleTimeString()}</span>
      ${shown.length ? html`<details><summary>${head}</summary>${shown.map((one) => html`<div>${one}</div>`)}</details>` : html`<div class="row">${head}</div>`}</li>`;
  })}</ol>`;
}
