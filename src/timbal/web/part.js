// What the elements of the page share: they render their templates into themselves, again whenever a property changes.

import { render } from "./vendor/lit.js";

export class Part extends HTMLElement {
  /** The properties whose changes are shown. @type {string[]} */
  static properties = [];

  /** Fails when rendering does. @type {Promise<unknown>} */
  #rendered = Promise.resolve();
  /** What has changed since it was rendered, with what it was before. @type {Map<string, unknown>} */
  #changed = new Map();
  #pending = false;
  /** @type {(() => void)[]} */
  #leave = [];

  constructor() {
    super();
    for (const name of new.target.properties) {
      /** @type {unknown} */
      let value;
      const set = (/** @type {unknown} */ now) => {
        const before = value;
        value = now;
        if (!Object.is(before, now)) this.requestUpdate(name, before);
      };
      Object.defineProperty(this, name, { get: () => value, set });
    }
  }

  connectedCallback() {
    this.requestUpdate();
  }

  disconnectedCallback() {
    for (const leave of this.#leave.splice(0)) leave();
  }

  get updateComplete() {
    return this.#rendered;
  }

  /** Render it soon. @param {string} [name] A property that has changed. @param {unknown} [before] */
  requestUpdate(name, before) {
    if (name && !this.#changed.has(name)) this.#changed.set(name, before);
    if (this.#pending || !this.isConnected) return;
    this.#pending = true;
    this.#rendered = Promise.resolve().then(() => this.performUpdate());
  }

  /** Render it now, if it is not up to date. */
  performUpdate() {
    if (!this.#pending) return;
    const changed = this.#changed;
    let content;
    try {
      this.willUpdate(changed);
      content = this.render();
    } finally {
      this.#changed = new Map();
      this.#pending = false;
    }
    render(content, this, { host: this });
    this.updated(changed);
  }

  /** What this changes is rendered at once. @param {Map<string, unknown>} changed */
  willUpdate(changed) {}

  render() {
    return /** @type {unknown} */ (undefined);
  }

  /** @param {Map<string, unknown>} changed */
  updated(changed) {}

  /** Until it leaves the page. @param {EventTarget} target @param {string} names @param {(event: any) => void} listener */
  listen(target, names, listener) {
    for (const name of names.split(" ")) {
      target.addEventListener(name, listener);
      this.#leave.push(() => target.removeEventListener(name, listener));
    }
  }

  /** The first of these inside. @param {string} selector @returns {any} */
  find(selector) {
    return this.querySelector(selector);
  }

  /** Focus it, once what has changed is shown. @param {string} selector */
  async focusOn(selector) {
    await this.updateComplete;
    this.find(selector)?.focus();
  }
}
