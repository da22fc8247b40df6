// What has run and what runs: a list, and of each run what happened in it.

import { client, inbox, may, runnables } from "./context.js";
import { LOADING, text, warning } from "./data.js";
import { Part } from "./part.js";
import { lineOf } from "./record.js";
import { moment, took } from "./time.js";
import { stateTag, statuses, timeline } from "./timeline.js";
import { html, nothing } from "./vendor/lit.js";

class TimbalRuns extends Part {
  static properties = ["runId", "_runs", "_next", "_record", "_problem", "_filter"];

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #soon;

  constructor() {
    super();
    /** @type {string | undefined} */
    this.runId = undefined;
    /** @type {any[] | null} */
    this._runs = null;
    /** @type {string | null} */
    this._next = null;
    /** @type {any} */
    this._record = null;
    this._problem = "";
    /** @type {Record<string, string>} */
    this._filter = {};
  }

  connectedCallback() {
    super.connectedCallback();
    this.listen(inbox, "opened settled snapshot", () => this.#refresh());
    this.listen(window, "focus", () => this.#refresh());
  }

  /** Once for all news that come together. */
  #refresh() {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      if (!document.hidden) void this.#load();
    }, 100);
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has("runId") && !changed.has("_filter")) return;
    this._record = null;
    void this.#load();
  }

  /** @param {string} [after] */
  async #load(after) {
    const { runId, _filter: filter } = this;
    const limit = after ? 50 : Math.max(50, this._runs?.length ?? 0);
    try {
      const found = await (runId ? client.getRun(runId) : client.runs({ ...filter, after, limit: Math.min(limit, 200) }));
      if (runId !== this.runId || filter !== this._filter) return;
      this._problem = "";
      if (runId) this._record = found;
      else [this._runs, this._next] = [after ? [...(this._runs ?? []), ...found.items] : found.items, found.next];
    } catch (error) {
      this._problem = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {string} run */
  async #stop(run) {
    await client.cancel(run).catch((error) => (this._problem = error.message));
    this.#refresh();
  }

  render() {
    const problem = this._problem ? warning(text(this._problem)) : nothing;
    return [problem, this.runId ? this.#one() : this.#list()];
  }

  #list() {
    const filtered = Object.values(this._filter).some(Boolean);
    return html`<h1>Runs</h1>
      <form class="narrow" role="search" aria-label="Filter" @change=${this.#narrow} @submit=${this.#narrow}>
        ${this.#choice("status", "State", statuses)} ${this.#choice("runnable", "What", runnables.map(({ name }) => [name, name]))}
        <label>Label <input name="label" placeholder="tenant=acme" pattern="[^=]+=.*" /></label>
      </form>
      ${!this._runs ? LOADING : this._runs.length ? this.#rows() : html`<p class="empty">${filtered ? "No run is like that." : html`Nothing has run yet. Each conversation and each tool that you start is listed here, with all that happened in it. ${may("run") ? html`<a href="#/new">Start one</a>` : nothing}`}</p>`}`;
  }

  /** @param {string} name @param {string} label @param {(readonly [string, string])[]} options */
  #choice(name, label, options) {
    return html`<label>${label} <select name=${name}><option value="">All</option>${options.map(([value, words]) => html`<option value=${value}>${words}</option>`)}</select></label>`;
  }

  /** @param {Event} event */
  #narrow(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    if (form.reportValidity()) this._filter = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
  }

  /** The last run of each piece of work, and of those that were paused only those that still are. */
  get #current() {
    const open = new Set([...inbox.items.values()].map((item) => item.run_id));
    const seen = new Set();
    return this._runs?.filter((run) => !seen.has(run.execution_id) && seen.add(run.execution_id) && (run.status !== "paused" || !inbox.ready || open.has(run.execution_id)));
  }

  #rows() {
    return html`<ul class="runs">${this.#current?.map(
        (run) => html`<li><a class="card" href="#/runs/${run.run_id}">
          <span><b>${text(run.runnable)}</b> ${labels(run)}</span> ${stateTag(run.status)}
          <span class="muted">${moment(run.t0)}${run.t1 ? html` · ${took(run.t1 - run.t0)}` : nothing}</span></a></li>`,
      )}</ul>
      ${this._next ? html`<button @click=${() => this.#load(this._next ?? undefined)}>Show more</button>` : nothing}`;
  }

  #one() {
    const record = this._record;
    if (!record) return this._problem ? nothing : LOADING;
    const last = record.runs.at(-1);
    const open = ["running", "paused", "parked"].includes(last.status);
    return html`<nav aria-label="Back"><a href="#/runs">All runs</a></nav>
      <header class="head"><h1>${text(record.runnable)}</h1>${stateTag(last.status)} ${labels(record)}</header>
      <p class="muted">Started ${moment(record.runs[0].t0)}${last.t1 && !open ? html`, took ${took(last.t1 - record.runs[0].t0)}` : nothing} · <code>${record.run_id}</code></p>
      ${record.error ? warning(html`It failed: ${text(record.error.message)}`) : nothing}
      <p class="actions"><a class="button" href="#/chat/${last.run_id}">Open the conversation</a>
        ${open && may("run") ? html`<button class="danger" @click=${() => this.#stop(last.run_id)}>Stop it for good</button>` : nothing}</p>
      ${record.pending.length ? html`<h2>Waits for</h2><ul>${record.pending.map((/** @type {any} */ item) => html`<li><a href="#/inbox/${item.run_id}/${item.id}">${text(lineOf(item.event))}</a></li>`)}</ul>` : nothing}
      <h2>What happened</h2>${timeline(record)}`;
  }
}

/** @param {any} run */
const labels = (run) => Object.entries(run.labels).map(([name, value]) => html`<span class="tag">${text(name)}: ${text(value)}</span> `);

customElements.define("timbal-runs", TimbalRuns);
