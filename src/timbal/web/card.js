// One question, wherever it is shown: it is answered once, and then tells what became of it.

import { Problem, Unreachable } from "./client.js";
import { announce, client, inbox, isTyping, keep, kept } from "./context.js";
import { same, text } from "./data.js";
import "./form.js";
import { keyOf } from "./inbox-state.js";
import "./kinds.js";
import { Part } from "./part.js";
import { nameOf, outcomeOf, recordOf, refusalOf } from "./record.js";
import { renderers, renderersOf } from "./renderers.js";
import { since, until } from "./time.js";
import { html, nothing } from "./vendor/lit.js";

/** What somebody would want to copy. @param {any} draft */
function writtenIn(draft) {
  const words = draft?.mode === undefined ? draft : draft.reason || draft.edit;
  return typeof words === "object" ? JSON.stringify(words, null, 2) : typeof words === "string" ? words : "";
}

/** Do it, and give what it threw, or what the browser only reported of it. @param {() => void} work @returns {unknown} */
function failureOf(work) {
  /** @type {unknown} */
  let failure;
  const note = (/** @type {ErrorEvent} */ event) => ((failure = event.error ?? event.message), event.preventDefault());
  addEventListener("error", note);
  try {
    work();
  } catch (error) {
    failure = error;
  }
  removeEventListener("error", note);
  return failure;
}

/** `item`: as in `GET /pending`, or `GET /pending/RUN/ID`. Fires `answered` with `{item, receipts, next_run_id}` when its answer was taken. */
class TimbalCard extends Part {
  static properties = ["item", "outcome", "mine", "sending", "errors", "problem", "failure"];

  #key = "";
  /** @type {any} The element that shows the question. */
  #view;
  /** @type {string[]} Those that could not. */
  #failed = [];
  /** @type {any} */
  #draft;
  /** @type {unknown} What was sent last, whether or not it arrived. */
  #sent;

  constructor() {
    super();
    this.item = /** @type {import("./record.js").Item} */ (/** @type {any} */ (undefined));
    this.#clear();
  }

  #clear() {
    /** @type {import("./record.js").Outcome | null} */
    this.outcome = null;
    this.mine = this.sending = false;
    /** @type {{pointer: string, message: string}[]} */
    this.errors = [];
    /** @type {{words: string, again?: () => void} | null} */
    this.problem = null;
    /** @type {unknown} */
    this.failure = undefined;
    this.#failed = [];
    this.#sent = undefined;
  }

  connectedCallback() {
    super.connectedCallback();
    this.listen(inbox, "settled", ({ detail }) => keyOf(detail) === this.#key && this.#settle(detail));
    // After a lost connection: what is no longer there was settled meanwhile.
    this.listen(inbox, "snapshot", () => inbox.items.has(this.#key) || this.#settle({}));
    this.listen(renderers, "registered", () => this.requestUpdate());
    this.listen(document, "keydown", (event) => this.#press(event));
  }

  willUpdate() {
    const key = keyOf(this.item);
    if (key === this.#key) return;
    this.#clear();
    this.#key = key;
    this.#view?.remove();
    this.#view = undefined;
    this.#draft = kept(key);
    const news = inbox.settled.get(key);
    if (this.item.settled) this.outcome = this.item.settled;
    else if (news) this.#settle(news);
  }

  /** It is settled: by what the server told, and else by its record. @param {any} news */
  async #settle(news) {
    // The news of one's own answer may be here before the server's reply, which says whose it was.
    if (this.outcome || this.sending) return;
    if (news.state) {
      this.outcome = news;
      this.problem = null;
      announce("This was settled by somebody else");
    }
    if (news.state && "value" in news) return;
    const { item } = this;
    const { settled } = await client.item(item.run_id, item.id).catch(() => item);
    if (settled && item === this.item) [this.outcome, this.problem] = [settled, null];
  }

  render() {
    const { item, outcome, problem } = this;
    const refusal = outcome ? null : refusalOf(item.event);
    const lost = outcome !== null && this.#draft !== undefined && !this.mine && !same(outcome.value, this.#sent ?? this.#draft);
    const written = lost && writtenIn(this.#draft);
    return html`<article class="card" aria-labelledby="head-${item.id}">
      <header class="asks" id="head-${item.id}">
        <span class="tag">${nameOf(item.kind)}</span><span>${text(item.event.runnable_path)} · asked ${since(item.asked_at)}</span>
        ${item.expires_at && !outcome ? html`<span class="tag deadline">${until(item.expires_at)}</span>` : nothing}
      </header>
      ${refusal ? html`<p class="notice">${refusal}</p>` : nothing}
      ${this.failure ? html`<p class="notice">The view for this kind of question does not work, so this is a plain one. ${text(String(this.failure))}</p>` : nothing}
      <div class="asking"></div>
      ${problem ? html`<div class="notice" role="alert">${problem.words} ${problem.again ? html`<button @click=${problem.again}>Try again</button>` : nothing}</div>` : nothing}
      ${outcome ? outcomeOf(item.event, outcome, this.mine ? "Your answer was taken" : lost ? "Somebody else was faster. Answered" : "Answered") : nothing}
      ${written ? html`<label class="lost">Your draft was not sent. You can copy it:<textarea dir="auto" readonly .value=${written}></textarea></label>` : nothing}
      ${recordOf(item, outcome)}
    </article>`;
  }

  updated() {
    const tag = renderersOf(this.item).find((one) => !this.#failed.includes(one));
    if (!tag) return;
    const failure = failureOf(() => {
      if (this.#view?.localName === tag) return this.#give();
      this.#view = document.createElement(tag);
      this.#view.addEventListener("answer", (/** @type {CustomEvent} */ event) => this.#send(event.detail?.value));
      this.#view.addEventListener("draft", (/** @type {CustomEvent} */ event) => this.#keep(event.detail?.value));
      this.#view.draft = this.#draft;
      this.#give();
      this.find(".asking").replaceChildren(this.#view);
    });
    const fail = (/** @type {unknown} */ error) => {
      this.failure = error;
      this.#failed.push(tag);
    };
    if (failure !== undefined) fail(failure);
    else this.#view.updateComplete?.catch(fail);
  }

  #give() {
    const { item, outcome, sending, errors } = this;
    const given = { item, disabled: outcome !== null || refusalOf(item.event) !== null, sending, errors, ...(outcome && { draft: undefined }) };
    for (const [name, value] of Object.entries(given)) if (this.#view[name] !== value) this.#view[name] = value;
  }

  /** @param {unknown} draft */
  #keep(draft) {
    const { response_schema, input_schema } = this.item.event;
    const secret = JSON.stringify([response_schema, input_schema]).includes('"format":"password"');
    if (!this.outcome && !secret) keep(this.#key, (this.#draft = draft));
  }

  /** @param {unknown} value */
  async #send(value) {
    if (this.sending || this.outcome) return;
    if (value === undefined) return void (this.problem = { words: "There was no answer in that." });
    const { item } = this, key = this.#key;
    this.sending = true;
    this.#sent = value;
    this.problem = null;
    this.errors = [];
    try {
      const answered = await client.answer(item.run_id, item.id, value);
      keep(key, undefined);
      const [receipt] = answered.receipts;
      announce("Your answer was taken");
      if (key === this.#key) {
        this.mine = receipt.state === "accepted";
        this.outcome = { ...receipt, state: "answered", next_run_id: answered.next_run_id };
        this.sending = false;
      }
      this.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail: { item, ...answered } }));
    } catch (error) {
      if (key !== this.#key) return;
      this.sending = false;
      const news = inbox.settled.get(key); // passed by while it was on its way
      if (error instanceof Unreachable && news) this.#settle(news);
      else this.#refused(error, value);
    }
  }

  /** @param {unknown} error @param {unknown} value */
  #refused(error, value) {
    const { status, receipts, errors, message } = error instanceof Problem ? error : new Problem({ detail: String(error) });
    if (error instanceof Unreachable || status >= 500) {
      const words = error instanceof Unreachable ? "Perhaps not sent: the server can't be reached. Your answer is kept, and counts once however often you try." : `Not sent: ${message}.`;
      this.problem = { words, again: () => this.#send(value) };
    } else if (status === 409 || status === 410) {
      if (this.#draft === undefined) this.#keep(value);
      const [receipt] = receipts;
      this.#settle(status === 409 ? { ...receipt, state: "answered", next_run_id: receipt?.run_id } : { state: receipt?.state });
    } else if (errors.length) {
      this.errors = errors.map((one) => ({ ...one, pointer: one.pointer.replace(/^\/value/, "") }));
    } else this.problem = { words: status === 403 ? "This is not for you to answer." : message };
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    if (event.repeat || event.altKey || !this.#hasKeys()) return;
    const modified = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && modified) (document.activeElement?.closest(".asking form") ?? this.find(".asking form"))?.requestSubmit();
    if (modified || isTyping(event)) return;
    const target = this.find(`.asking [data-key="${CSS.escape(event.key)}"]:enabled`);
    if (!target) return;
    event.preventDefault();
    target.focus();
    target.click();
  }

  /** Keys are for the card with the focus, or the only one that is open. */
  #hasKeys() {
    const open = [...document.querySelectorAll("timbal-card")].filter((one) => !(/** @type {TimbalCard} */ (one).outcome));
    return !this.outcome && (this.contains(document.activeElement) || (open.length === 1 && open[0] === this));
  }
}

customElements.define("timbal-card", TimbalCard);
