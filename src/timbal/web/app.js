// The page: where one is in it, what stands around it, and what is said aloud.

import { announce, base, inbox, isTyping, may, runnables, served } from "./context.js";
import "./chat.js";
import { warning } from "./data.js";
import "./inbox.js";
import "./runs.js";
import { Part } from "./part.js";
import { html, nothing } from "./vendor/lit.js";

/** What the address says: `#/chat`, `#/chat/RUN`, `#/new/NAME`, `#/inbox`, `#/inbox/RUN/ID`, `#/runs`, `#/runs/RUN`. */
function place() {
  const [path = "", parameters] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // somebody cut the link off
    }
  });
  return { view: view || (may("run") ? "new" : "inbox"), rest, parameters: new URLSearchParams(parameters) };
}

/** @type {Record<string, string>} */
const TITLES = { new: "New run", chat: "Run", inbox: "Inbox", runs: "Runs" };

/** @type {[string, string][]} */
const KEYS = [
  ["j k", "next and previous item of the inbox"],
  ["1 ... 9", "pick an option"],
  ["a", "approve, or yes"],
  ["e", "change what will run, then approve"],
  ["r", "deny, or no"],
  ["Ctrl Enter", "send the answer"],
  ["?", "show or hide this"],
];

export class TimbalApp extends Part {
  static properties = ["_place", "_keys"];

  constructor() {
    super();
    this._place = place();
    this._keys = false;
  }

  connectedCallback() {
    super.connectedCallback();
    this.replaceChildren();
    this.listen(window, "hashchange", () => {
      const { view } = this._place;
      this._place = place();
      if (this._place.view !== view) void this.focusOn("main");
    });
    this.listen(window, "timbal-moved", () => (this._place = place()));
    this.listen(document, "keydown", (event) => this.#pressed(event));
    this.listen(document, "timbal-announce", ({ detail }) => (this.find("#said").textContent = detail));
    this.listen(inbox, "snapshot opened settled connection", () => this.requestUpdate());
    this.listen(inbox, "opened", ({ detail }) => announce(`A new question from ${detail.runnable}`));
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.key === "?" && !isTyping(event)) this._keys = !this._keys;
    else if (event.key === "Escape" && this._keys) this._keys = false;
  }

  render() {
    const waiting = inbox.items.size;
    document.title = `${waiting ? `(${waiting}) ` : ""}${TITLES[this._place.view] ?? "Not found"} · timbal`;
    return html`
      <a class="skip" href="#main" @click=${this.#skip}>Skip to the content</a>
      <header class="bar">
        <a class="brand" href="#/"><img src=${new URL("web/icon.svg", base).href} alt="" width="24" height="24" />timbal</a>
        <nav aria-label="Page">
          ${may("run") ? this.#link("new", "New run", "+") : nothing}
          ${this.#link("inbox", "Inbox", "✉", waiting)}
          ${may("run") ? this.#link("runs", "Runs", "☰") : nothing}
        </nav>
        <div class="foot">
          ${served.by ? this.#signedIn() : nothing}
          <button class="quiet small" @click=${() => (this._keys = !this._keys)} aria-expanded=${this._keys}>Keys <kbd>?</kbd></button>
        </div>
      </header>
      <main id="main" tabindex="-1">${this.#connection()}${this.#view()}</main>
      ${this._keys ? this.#help() : nothing}
      <div id="said" class="unseen" role="status" aria-live="polite"></div>
    `;
  }

  /** @param {Event} event */
  #skip(event) {
    event.preventDefault();
    this.find("main").focus();
  }

  /** @param {string} view @param {string} text @param {string} sign @param {number} [count] */
  #link(view, text, sign, count = 0) {
    const here = this._place.view === view || (view === "runs" && this._place.view === "chat");
    return html`<a href="#/${view}" aria-current=${here ? "page" : nothing}>
      <span class="sign" aria-hidden="true">${sign}</span>${text}
      ${count ? html`<span class="badge" aria-label="${count} waiting">${count > 999 ? "999+" : count}</span>` : nothing}
    </a>`;
  }

  #signedIn() {
    return html`<form class="who" method="post" action=${new URL("session", base).href}>
      <span title="Signed in">${served.by?.sub}</span><button class="quiet small">Sign out</button>
    </form>`;
  }

  #connection() {
    if (inbox.problem) return warning(html`The inbox is not shown: ${inbox.problem}. <a href="">Load the page again</a>`);
    if (inbox.connected) return nothing;
    return warning("Offline: the server can't be reached. What you type is kept; this page goes on by itself.");
  }

  #view() {
    const { view, rest, parameters } = this._place;
    switch (view) {
      case "new":
      case "chat": {
        const [name, run] = view === "new" ? [rest[0] ?? runnables[0]?.name, undefined] : [undefined, rest[0]];
        return html`<timbal-chat .runnable=${name} .runId=${run} .focusItem=${parameters.get("item") ?? undefined}></timbal-chat>`;
      }
      case "inbox":
        return html`<timbal-inbox .selected=${rest.length > 1 ? `${rest[0]}/${rest[1]}` : undefined}></timbal-inbox>`;
      case "runs":
        return html`<timbal-runs .runId=${rest[0]}></timbal-runs>`;
      default:
        return html`<p class="empty">There is nothing at this address. <a href="#/">Go to the start</a></p>`;
    }
  }

  #help() {
    return html`<section class="card keys" role="dialog" aria-label="Keys">
      <h2>Keys</h2>
      <dl>${KEYS.map(([key, what]) => html`<div><dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl>
      <button @click=${() => (this._keys = false)}>Close</button>
    </section>`;
  }
}

customElements.define("timbal-app", TimbalApp);
