// Everything that waits for a person, in a list, and the one that is picked beside it.

import "./card.js";
import { client, inbox, isTyping, keep, kept, may } from "./context.js";
import { LOADING, seen, text, warning } from "./data.js";
import { keyOf } from "./inbox-state.js";
import { Part } from "./part.js";
import { labelsOf, lineOf, nameOf } from "./record.js";
import { since, until } from "./time.js";
import { html, nothing, repeat } from "./vendor/lit.js";

/** @typedef {import("./record.js").Item} Item */

const NO_FILTER = { runnable: "", kind: "", label: "", words: "" };

/** @param {Item} item */
const whole = (item) => JSON.stringify([item.event.payload, item.event.prompt, item.event.input, item.labels, item.runnable]).toLowerCase();

class TimbalInbox extends Part {
  static properties = ["selected", "view", "picked", "problem", "answered", "most"];

  /** @type {string | undefined} Which one was asked of the server. */
  #sought;

  constructor() {
    super();
    /** The filters, and the order. */
    this.view = { ...NO_FILTER, urgent: false, ...kept("timbal-inbox") };
    this.selected = /** @type {string | undefined} */ (undefined);
    /** The one that is picked; it stays while it is, whatever becomes of it. */
    this.picked = /** @type {Item | undefined} */ (undefined);
    this.problem = "";
    /** Of a long list the beginning is there first, and the rest after it is seen. */
    this.most = 50;
    /** Whether it was answered here. */
    this.answered = false;
  }

  connectedCallback() {
    super.connectedCallback();
    this.listen(inbox, "snapshot opened settled", () => this.requestUpdate());
    this.listen(document, "keydown", (event) => this.#press(event));
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("selected")) {
      this.picked = this.#sought = undefined;
      this.answered = false;
      this.problem = "";
    }
    if (!this.selected || this.picked || !inbox.ready) return;
    this.picked = inbox.items.get(this.selected);
    if (!this.picked && this.#sought !== this.selected) void this.#fetch((this.#sought = this.selected));
  }

  /** @param {string} key One that does not wait any more. */
  async #fetch(key) {
    const [runId = "", id = ""] = key.split("/");
    const [item, problem] = await client.item(runId, id).then((item) => [item, ""], (error) => [undefined, error.status === 403 ? "it is for others to answer" : error.message]);
    if (key !== this.selected) return;
    this.picked ??= item;
    this.problem = problem;
  }

  /** What the list shows, in its order. */
  get #shown() {
    const { runnable, kind, label, words, urgent } = this.view;
    const fits = (/** @type {Item} */ item) =>
      (!runnable || item.runnable === runnable) && (!kind || item.kind === kind) && (!label || labelsOf(item).includes(label)) &&
      (!words || whole(item).includes(words.toLowerCase()));
    const items = [...inbox.items.values()].filter((item) => fits(item) || keyOf(item) === this.selected);
    if (this.picked && !inbox.items.has(keyOf(this.picked))) items.push(this.picked);
    items.sort((one, other) => one.asked_at - other.asked_at);
    return urgent ? items.sort((one, other) => (one.expires_at ?? Number.MAX_VALUE) - (other.expires_at ?? Number.MAX_VALUE)) : items;
  }

  render() {
    if (!inbox.ready) return html`<h1>Inbox</h1>${inbox.problem ? nothing : LOADING}`;
    if (!inbox.items.size && !this.selected) {
      return html`<h1>Inbox</h1><div class="empty"><h2>Nothing waits for you</h2>
        <p>When an agent has a question, or needs a yes before it does something, you see it here at once.</p>
        ${may("run") ? html`<a class="button primary" href="#/new">Start a run</a>` : nothing}</div>`;
    }
    const items = this.#shown;
    return html`
      <section class="list" aria-label="What waits" ?data-picked=${this.selected}>
        <h1>Inbox</h1>
        ${this.#filters()}
        ${items.length ? nothing : html`<p class="muted">Nothing fits these filters. <button class="small" @click=${() => this.#set(NO_FILTER)}>Show all</button></p>`}
        <ul>${repeat(items.slice(0, this.most), keyOf, (item) => this.#row(item))}</ul>
      </section>
      <section class="detail" aria-label="The one you picked" tabindex="-1" ?data-picked=${this.selected} @answered=${(/** @type {CustomEvent} */ { detail }) => keyOf(detail.item) === this.selected && this.#answered()}>
        <a class="button back" href="#/inbox">‹ All that waits</a>
        ${this.picked ? html`<timbal-card .item=${this.picked}></timbal-card>` : this.#missing()}
        ${this.answered ? html`<p class="next"><a class="button primary" href="#/inbox/${this.#next}">${this.#next ? "Next" : "Back to the inbox"}</a></p>` : nothing}
      </section>`;
  }

  #missing() {
    if (!this.selected) return html`<p class="empty">Pick one from the list, or press <kbd>j</kbd>.</p>`;
    return this.problem ? warning(html`It can't be shown: ${text(this.problem)}`) : LOADING;
  }

  #filters() {
    const all = [...inbox.items.values()];
    const choose = (/** @type {string} */ name, /** @type {string} */ words, /** @type {string[]} */ found) => {
      const chosen = this.view[name];
      const options = [...new Set([...found, ...(chosen ? [chosen] : [])])].sort();
      if (options.length < 2 && !chosen) return nothing;
      return html`<select aria-label=${words} @change=${(/** @type {any} */ event) => this.#set({ [name]: event.target.value })}>
        <option value="">${words}: all</option>
        ${options.map((one) => html`<option value=${one} ?selected=${one === chosen}>${name === "kind" ? nameOf(one) : seen(one)}</option>`)}
      </select>`;
    };
    return html`<div class="filters" role="search">
      <input type="search" aria-label="Search" placeholder="Search" .value=${this.view.words} @input=${(/** @type {any} */ event) => this.#set({ words: event.target.value })} />
      ${choose("runnable", "From", all.map((item) => item.runnable))}${choose("kind", "Kind", all.map((item) => item.kind))}${choose("label", "Label", all.flatMap(labelsOf))}
      <label class="switch"><input type="checkbox" .checked=${this.view.urgent} @change=${(/** @type {any} */ event) => this.#set({ urgent: event.target.checked })} />Most urgent first</label>
    </div>`;
  }

  /** @param {object} change */
  #set(change) {
    this.view = { ...this.view, ...change };
    keep("timbal-inbox", this.view);
  }

  /** @param {Item} item */
  #row(item) {
    const key = keyOf(item), open = inbox.items.has(key);
    return html`<li><a class="card" href="#/inbox/${key}" aria-current=${key === this.selected ? "true" : nothing}>
      <bdi class="line">${seen(lineOf(item.event))}</bdi>
      <span class="about">${open ? nothing : html`<span class="tag">settled</span>`}<span>${nameOf(item.kind)} · ${item.event.runnable_path} · ${since(item.asked_at)}</span>
        ${item.expires_at && open ? html`<span class="tag">${until(item.expires_at)}</span>` : nothing}${labelsOf(item).map((one) => html`<bdi class="tag">${seen(one)}</bdi>`)}</span>
    </a></li>`;
  }

  /** @param {number} step */
  #neighbour(step) {
    const keys = this.#shown.map(keyOf);
    return keys[keys.indexOf(this.selected ?? "") + step];
  }

  /** Where to go when it is answered. */
  get #next() {
    return this.#neighbour(1) ?? this.#neighbour(-1) ?? "";
  }

  #answered() {
    this.answered = true;
    this.focusOn(".next a");
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = this.#neighbour(step);
    if (key) location.hash = `#/inbox/${key}`;
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  updated(changed) {
    if (inbox.ready && this.most < Infinity) requestAnimationFrame(() => setTimeout(() => (this.most = Infinity)));
    if (this.selected && (changed.has("selected") || changed.has("most"))) this.find("[aria-current]")?.scrollIntoView({ block: "nearest" });
    if (!this.selected || !changed.has("selected")) return;
    this.find(".detail")?.focus({ preventScroll: true });
  }
}

customElements.define("timbal-inbox", TimbalInbox);
