// What the elements of the inbox share.

import { LitElement } from "./vendor/lit.js";

/** Properties that are no attributes. @param {string[]} names */
export const props = (...names) => Object.fromEntries(names.map((name) => [name, { attribute: false }]));

export class Part extends LitElement {
  /** @type {(() => void)[]} */
  #leave = [];

  createRenderRoot() {
    return this;
  }

  /** Until it leaves the page. @param {EventTarget} target @param {string} names @param {(event: any) => void} listener */
  listen(target, names, listener) {
    for (const name of names.split(" ")) {
      target.addEventListener(name, listener);
      this.#leave.push(() => target.removeEventListener(name, listener));
    }
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    for (const leave of this.#leave.splice(0)) leave();
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
