// A conversation: started here or reopened by its run, read as it happens, and gone on with.

import { Problem, Unreachable } from "./client.js";
import { announce, client, inbox, keep, kept, may, now, runnables } from "./context.js";
import { LOADING, text, warning } from "./data.js";
import "./form.js";
import { Part } from "./part.js";
import { eventsOf, newTurn, told } from "./transcript.js";
import { promptOf, turnOf } from "./turn.js";
import { html, nothing, repeat } from "./vendor/lit.js";

/** @typedef {import("./transcript.js").Turn} Turn */

const EARLIER = 4, SOON = 2000, LATE = 30_000;

class TimbalChat extends Part {
  static properties = ["runnable", "runId", "focusItem", "_turns", "_schema", "_problem", "_lost", "_earlier", "_below", "_busy", "_note", "_name"];

  /** @type {string | undefined} The run that the address says. */
  #shown;
  #end = new AbortController();
  #hidden = new AbortController();
  /** @type {[string, any][]} Events that are not shown yet, with their turn. */
  #queue = [];
  /** @type {Map<string, Set<unknown>>} The runs of each turn that are read. */
  #reads = new Map();
  /** @type {Record<string, unknown>} What the form begins with. */
  #values = {};
  #draft = "";
  #stuck = true;
  #top = 0;
  #since = now();
  /** @type {HTMLElement | null} */
  #main = null;
  #grown = new ResizeObserver(() => this.#scroll());

  constructor() {
    super();
    /** @type {string | undefined} */
    this.runnable = undefined;
    /** @type {string | undefined} */
    this.runId = undefined;
    /** @type {string | undefined} */
    this.focusItem = undefined;
    this._name = "";
    this.#clear();
  }

  #clear() {
    this.#end.abort();
    this.#end = new AbortController();
    /** @type {Turn[]} */
    this._turns = [];
    /** @type {any} */
    this._schema = null;
    this._problem = this._note = "";
    this._lost = this._below = this._busy = false;
    /** @type {string | null} */
    this._earlier = null;
    this.#queue = [];
    this.#reads = new Map();
    this.#stuck = true;
  }

  connectedCallback() {
    super.connectedCallback();
    this.#main = this.closest("main");
    this.listen(this.#main ?? this, "scroll", () => this.#scrolled());
    this.listen(document, "visibilitychange", () => this.#seen());
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#end.abort();
    this.#grown.disconnect();
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if ((changed.has("runId") && this.runId !== this.#shown) || (changed.has("runnable") && !this.runId)) {
      this.#shown = this.runId;
      this.#clear();
      this._name = this.runnable ?? "";
      this.#draft = kept(this.#place) ?? "";
      void this.#open(this.#end.signal);
    }
  }

  updated() {
    this.#grown.observe(this.find(".transcript"));
    if (this.focusItem) this.#focus();
  }

  // -- what is read --------------------------------------------------------------------------------------------------

  /** @param {AbortSignal} signal */
  async #open(signal) {
    try {
      if (this.runId) await this.#load(this.runId, signal);
      else if (this.#served) {
        const schema = await client.paramsSchema(this.#at);
        if (!signal.aborted) this._schema = schema;
      }
    } catch (error) {
      if (!signal.aborted) this._problem = messageOf(error);
    }
  }

  /** A turn and some before it. @param {string} id @param {AbortSignal} signal */
  async #load(id, signal) {
    for (let n = 0, run = /** @type {string | null} */ (id); run; n++) {
      if (n === EARLIER) return void (this._earlier = run);
      const record = await client.getRun(run);
      if (signal.aborted) return;
      this._name = record.runnable;
      this._turns = [newTurn(record.execution_id), ...this._turns];
      void this.#follow(record.execution_id, signal);
      run = record.parent_id;
    }
    this._earlier = null;
  }

  /** Read all runs of an execution, and those that go on with it. @param {string} run @param {AbortSignal} signal */
  async #follow(run, signal) {
    const read = this.#reads.get(run) ?? new Set();
    this.#reads.set(run, read);
    try {
      while (!signal.aborted) {
        const record = await this.#record(run, signal);
        for (const outcome of record.settled) this.#tell(run, { ...outcome, type: "SETTLED" });
        const next = record.runs.find((/** @type {any} */ one) => !read.has(one.run_id));
        if (next && record.told.includes(next.run_id) && (await this.#read(run, next.run_id, read, signal))) continue;
        for (const event of next ? eventsOf(record) : []) this.#tell(run, event);
        if (next && next.status !== "cancelled") this._note = "Some of this ran elsewhere or long ago, so only its record is shown: no live text and no progress.";
        if (next && next.t1 !== null) read.add(next.run_id);
        else if (next || isOpen(record.runs.at(-1))) await this.#news(run, record.pending.length > 0 ? LATE : SOON, signal);
        else return this.#moveOn(record);
      }
    } catch (error) {
      if (!signal.aborted) this._problem = messageOf(error);
    }
  }

  /** @param {string} run @param {AbortSignal} signal @returns {Promise<any>} */
  async #record(run, signal) {
    for (;;) {
      try {
        const record = await client.getRun(run);
        signal.throwIfAborted();
        return record;
      } catch (error) {
        if (!(error instanceof Unreachable || (error instanceof Problem && error.status >= 502))) throw error;
        await this.#news(run, SOON, signal);
      }
    }
  }

  /** Read what a run tells to its end; false where that is no longer kept. @param {string} run @param {string} id @param {Set<unknown>} read @param {AbortSignal} signal */
  async #read(run, id, read, signal) {
    for (let at = id, after = 0; ; ) {
      while (document.hidden) await new Promise((shown) => document.addEventListener("visibilitychange", shown, { once: true }));
      signal.throwIfAborted();
      const here = AbortSignal.any([signal, this.#hidden.signal]);
      try {
        for await (const event of client.events(at, { after, signal: here, onConnection: (there) => (this._lost = !there) })) {
          if (event.type === "expired") return false;
          if (event.type === "continued") [at, after] = [(read.add(at), event.run_id), 0];
          else [after] = [event.seq, this.#tell(run, event)];
        }
        read.add(at);
        return true;
      } catch (error) {
        if (!here.aborted) throw error;
      }
    }
  }

  /** Until something has become of this execution's questions, or for so long. @param {string} run @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
  #news(run, ms, signal) {
    return new Promise((go) => {
      const end = new AbortController();
      const done = () => (end.abort(), clearTimeout(timer), go());
      const timer = setTimeout(done, inbox.problem || !inbox.connected ? SOON : ms);
      const listen = (/** @type {EventTarget} */ target, /** @type {string} */ name, /** @type {(event: any) => void} */ hear) => target.addEventListener(name, hear, { signal: end.signal });
      listen(inbox, "settled", ({ detail }) => detail.run_id === run && (this.#tell(run, { type: "NEWS" }), done()));
      for (const [target, name] of /** @type {const} */ ([[inbox, "snapshot"], [this, "answered"], [this, "woken"], [signal, "abort"]])) listen(target, name, done);
    });
  }

  /** A new message that was sent elsewhere. @param {any} record */
  #moveOn(record) {
    const next = record.settled.find((/** @type {any} */ one) => one.state === "superseded")?.next_run_id;
    if (next && !this._busy && this._turns.at(-1)?.run === record.execution_id) this.#append(next);
  }

  /** @param {string} run */
  #append(run) {
    if (this._turns.some((turn) => turn.run === run)) return;
    this._turns = [...this._turns, newTurn(run)];
    this.#moved(run);
    void this.#follow(run, this.#end.signal);
  }

  /** The address leads to the last turn, without a new place in the history. @param {string} run */
  #moved(run) {
    this.#shown = run;
    history.replaceState(null, "", `#/chat/${run}`);
    dispatchEvent(new Event("timbal-moved"));
  }

  /** @param {string} run @param {any} event */
  #tell(run, event) {
    if (!this.#queue.length) requestAnimationFrame(() => this.#flush());
    this.#queue.push([run, event]);
    return undefined;
  }

  #flush() {
    const queue = this.#queue;
    this.#queue = [];
    this._turns = this._turns.map((turn) => queue.reduce((made, [run, event]) => (run === turn.run ? told(made, event) : made), turn));
    for (const [, event] of queue) this.#say(event);
  }

  /** Finished messages are read out, and not each piece of them. @param {any} event */
  #say(event) {
    if (event.type !== "OUTPUT" || event.t1 < this.#since) return;
    const words = event.output?.content?.flatMap((/** @type {any} */ part) => part.text ?? []).join(" ");
    if (event.path?.endsWith(".llm") && words) announce(words.replace(/[*_`#]/g, "").slice(0, 500));
    else if (!event.parent_call_id && event.status.code === "error") announce(`It failed: ${event.status.message}`);
  }

  // -- what is sent --------------------------------------------------------------------------------------------------

  get #served() {
    return runnables.find(({ name }) => name === this._name);
  }

  get #at() {
    return this.#served?.at.replace("/", "") ?? "";
  }

  /** Under which name the message is kept that is not sent yet. */
  get #place() {
    return `timbal-message ${this.#shown ?? this._name}`;
  }

  /** Start a run; gives whether it was. @param {Record<string, unknown>} input @param {{parentId?: string, resume?: Record<string, unknown>}} [more] */
  async #start(input, more) {
    const signal = this.#end.signal;
    this._busy = true;
    this._problem = "";
    this.#stuck = true;
    try {
      const events = client.start(input, { runnable: this.#at, signal, onConnection: (there) => (this._lost = !there), ...more });
      const { value: first } = await events.next();
      await events.return();
      if (signal.aborted || !first) return false;
      if (more?.resume) void this.#follow(this._turns.at(-1)?.run ?? first.run_id, signal);
      else this.#append(first.run_id);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      this._problem = messageOf(error);
      if (error instanceof Problem) this.find("timbal-form")?.refuse(error.errors);
      return false;
    } finally {
      this._busy = false;
    }
  }

  /** @param {string} prompt */
  async #send(prompt) {
    if (!prompt.trim() || this._busy || this.#running) return;
    const place = this.#place;
    if (!(await this.#start({ prompt }, { parentId: this._turns.at(-1)?.run }))) return;
    this.#draft = "";
    keep(place, undefined);
    this.requestUpdate();
  }

  /** @param {Event} event */
  async #submit(event) {
    event.preventDefault();
    const { value, errors } = this.find("timbal-form")?.read() ?? { value: {} };
    if (errors) return;
    this.#values = value;
    await this.#start(value);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void this.#send(this.#draft);
  }

  async #stop() {
    try {
      await client.cancel(this._turns.at(-1)?.run ?? "");
      this.dispatchEvent(new Event("woken"));
    } catch (error) {
      this._problem = messageOf(error);
    }
  }

  get #running() {
    const last = this._turns.at(-1);
    return !!last && !last.status;
  }

  // -- where one looks -----------------------------------------------------------------------------------------------

  #seen() {
    if (document.hidden) this.#hidden.abort();
    else this.#hidden = new AbortController();
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = /** @type {HTMLElement} */ (this.#main);
    const near = scrollHeight - scrollTop - clientHeight < 80;
    if (near || scrollTop < this.#top) this.#stuck = near;
    if (near) this._below = false;
    this.#top = scrollTop;
  }

  #scroll() {
    if (!this.#main) return;
    if (this.focusItem) this.#focus();
    else if (this.#stuck) this.#main.scrollTop = this.#main.scrollHeight;
    else if (this.#main.scrollHeight - this.#main.scrollTop - this.#main.clientHeight > 80) this._below = true;
  }

  #focus() {
    const asked = this.find(`[data-item="${CSS.escape(this.focusItem ?? "")}"]`);
    if (!asked) return;
    for (let fold = asked.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) fold.open = true;
    asked.scrollIntoView({ block: "center" });
    asked.focus({ preventScroll: true });
    this.focusItem = undefined;
    this.#stuck = false;
  }

  // -- what is shown -------------------------------------------------------------------------------------------------

  render() {
    const last = this._turns.at(-1);
    return html`${last ? this.#head(last) : this.#welcome()}
      ${this._earlier ? html`<button class="quiet" @click=${() => this.#load(this._earlier ?? "", this.#end.signal)}>Show earlier messages</button>` : nothing}
      <div class="transcript" role="log" aria-live="off" aria-label="Conversation">${repeat(this._turns, (turn) => turn.run, (turn) => turnOf(turn))}</div>
      <div class="below">
        ${this._below ? html`<button class="small" @click=${this.#down}>New messages ↓</button>` : nothing}
        ${this._lost ? html`<p class="notice" role="status">The connection is lost. The run goes on, and this page catches up by itself.</p>` : nothing}
        ${this._note ? html`<p class="hint">${this._note}</p>` : nothing}
        ${this._problem ? warning(text(this._problem)) : nothing}
        ${this.#served && may("run") ? this.#composer(last) : nothing}
      </div>`;
  }

  #down() {
    this.#stuck = true;
    this.#scroll();
  }

  /** @param {Turn} last */
  #head(last) {
    return html`<header class="head"><h1>${text(last.root?.name ?? this._name)}</h1><a href="#/runs/${last.run}">Details of this run</a></header>`;
  }

  #welcome() {
    if (this.runId) return this._problem ? nothing : LOADING;
    const one = this.#served;
    if (!one) return html`<p class="empty">${this._name ? html`This server does not have “${text(this._name)}”. <a href="#/new">See what it has</a>` : "This server has nothing to run."}</p>`;
    return html`${runnables.length > 1 ? html`<nav class="choice" aria-label="What to run">${runnables.map(({ name }) => html`<a href="#/new/${name}" aria-current=${name === one.name ? "page" : nothing}>${name}</a>`)}</nav>` : nothing}
      <header class="welcome"><h1>${one.name}</h1>
        ${one.description ? html`<p>${text(one.description)}</p>` : nothing}
        ${isAgent(one) ? this.#examples() : html`<p class="muted">${this.#needs ? "Fill in what it needs and start it." : "It needs nothing from you to start."} When it has a question, it asks here.</p>`}
      </header>`;
  }

  /** Whether it takes any input, as far as that is known. */
  get #needs() {
    return !this._schema || Object.keys(this._schema.properties ?? {}).length > 0;
  }

  #examples() {
    const examples = (this._schema?.properties?.prompt?.examples ?? []).slice(0, 3);
    if (!examples.length) return html`<p class="muted">Say what you need. It works step by step, shows what it does, and asks you when it needs a decision.</p>`;
    return html`<p class="muted">Say what you need, or try one of these:</p>
      <ul class="examples">${examples.map((/** @type {string} */ example) => html`<li><button type="button" ?disabled=${this._busy} @click=${() => this.#send(example)}>${text(example)}</button></li>`)}</ul>`;
  }

  /** @param {Turn | undefined} last */
  #composer(last) {
    const one = this.#served;
    const open = last && [...last.questions.values()].some(({ settled }) => !settled) && last.root?.state === "waiting";
    const stop = this.#running || open ? html`<button type="button" class="${open ? "quiet" : ""}" @click=${this.#stop}>${open ? "Cancel this run" : "Stop"}</button>` : nothing;
    const again = last?.root?.state === "failed" ? html`<button type="button" ?disabled=${this._busy} @click=${() => this.#start({}, { parentId: last.run, resume: {} })}>Try again</button>` : nothing;
    if (one && isAgent(one)) return this.#box(last, open ?? false, stop, again);
    if (last) {
      const fresh = this.#running || open ? nothing : html`<a class="button" href="#/new/${last.root?.name}" @click=${() => (this.#values = last.root?.input ?? {})}>Run it again</a>`;
      return html`<div class="actions">${stop}${again}${fresh}</div>`;
    }
    if (!this._schema) return nothing;
    return html`<form class="card start" novalidate @submit=${this.#submit}>
      ${this.#needs ? html`<timbal-form .schema=${this._schema} .value=${this.#values} .disabled=${this._busy}></timbal-form>` : nothing}
      <div class="actions"><button class="primary" ?disabled=${this._busy}>Start</button></div>
    </form>`;
  }

  /** @param {Turn | undefined} last @param {boolean} open @param {unknown} stop @param {unknown} again */
  #box(last, open, stop, again) {
    const edit = last?.root?.state === "cancelled" ? html`<button type="button" class="quiet" @click=${() => this.#refill(promptOf(last.root?.input))}>Edit and send again</button>` : nothing;
    return html`<form class="composer" @submit=${(/** @type {Event} */ event) => (event.preventDefault(), this.#send(this.#draft))}>
      <label class="unseen" for="message">Message to ${this._name}</label>
      <textarea id="message" rows="1" placeholder="Message ${this._name}" .value=${this.#draft} @input=${(/** @type {any} */ event) => keep(this.#place, (this.#draft = event.target.value))} @keydown=${this.#pressed}></textarea>
      <div class="buttons">${again}${edit}${stop}<button class="primary" ?disabled=${this._busy || this.#running}>Send</button></div>
      ${open ? html`<p class="hint">Something above waits for an answer. A new message leaves it unanswered, where that is allowed.</p>` : nothing}
    </form>`;
  }

  /** @param {string} prompt */
  #refill(prompt) {
    this.#draft = prompt;
    this.requestUpdate();
    this.find("textarea").focus();
  }
}

/** Whether an execution may still go on, by its last run. @param {{status: string, reason: string | null}} run */
const isOpen = ({ status, reason }) => ["running", "paused", "parked"].includes(status) || reason === "interrupted";

/** @param {{type: string}} one */
const isAgent = (one) => one.type === "Agent";

/** @param {unknown} error */
function messageOf(error) {
  if (error instanceof Problem && error.status === 422 && / waits for /.test(error.message)) return "Not sent: something above has to be answered or cancelled first.";
  return error instanceof Error ? error.message : String(error);
}

customElements.define("timbal-chat", TimbalChat);
