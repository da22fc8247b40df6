// Shows what others wrote: texts and JSON, as text, whatever is in it.

import { Part } from "./part.js";
import { html, nothing } from "./vendor/lit.js";

const LONG = 400, MANY = 50;

/** What nobody sees, and what changes how the rest is seen. */
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** @param {string} text */
export const seen = (text) => text.replace(UNSEEN, (one) => `[U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`);

/** A text whose direction is its own affair; of a long one the beginning. @param {unknown} given @returns {unknown} */
export function text(given) {
  const all = typeof given === "string" ? given : JSON.stringify(given);
  const shown = (/** @type {string} */ some) => html`<bdi class="text">${seen(some)}</bdi>`;
  if (all.length <= LONG) return shown(all);
  return fold(`Show all ${all.length.toLocaleString("en")} characters`, () => shown(all), shown(`${all.slice(0, LONG)} …`));
}

/** A value for people who don't read JSON; what is nested is folded. @param {any} value @returns {unknown} */
export function data(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (!isNested(value)) return value === "" || value == null ? html`<span class="muted">${value === "" ? "empty" : "none"}</span>` : text(value);
  const count = Object.keys(value).length;
  if (!count) return data("");
  if (Array.isArray(value) && count <= MANY && !value.some(isNested)) return html`<ul class="data">${value.map((one) => html`<li>${data(one)}</li>`)}</ul>`;
  return fold(`Show ${count} ${Array.isArray(value) ? "entries" : count > 1 ? "fields" : "field"}`, () => fields(value));
}

/** A value that is not folded itself. @param {any} value */
export const whole = (value) => (isNested(value) && Object.keys(value).length ? fields(value) : data(value));

/** The fields of an object, or the entries of a list. @param {any} value @returns {unknown} */
export function fields(value) {
  const all = Object.entries(value);
  const list = (/** @type {typeof all} */ some) => rows(some.map(([name, one]) => [Array.isArray(value) ? Number(name) + 1 : name, data(one)]));
  return all.length <= MANY ? list(all) : fold(`Show all ${all.length}`, () => list(all), list(all.slice(0, MANY)));
}

/** Something went wrong. @param {unknown} words */
export const warning = (words) => html`<p class="notice" role="alert">${words}</p>`;

export const LOADING = html`<p class="loading">Loading …</p>`;

/** Names, and what is told of each; nothing is told of what is empty. @param {unknown[][]} all */
export const rows = (all) => html`<dl class="data">${all.map(([name, told]) => (told ? html`<div><dt>${text(name)}</dt><dd>${told}</dd></div>` : nothing))}</dl>`;

/** An object in a line. @param {any} value */
export function brief(value) {
  const words = Object.entries(value ?? {}).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`);
  const all = words.join(", ").slice(0, 121);
  return all.length > 120 ? `${all.slice(0, 119)}…` : all;
}

/** @param {unknown} value @returns {boolean} */
export const isNested = (value) => typeof value === "object" && value !== null;

/** @param {unknown} one @param {unknown} other */
export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** In which places two values differ. @param {any} old @param {any} now @param {string} [at] @returns {unknown[][]} */
function differences(old, now, at = "") {
  if (same(old, now)) return [];
  const alike = isNested(old) && isNested(now) && Array.isArray(old) === Array.isArray(now) && old.length === now.length;
  if (!alike) return [[at, html`<del>${data(old)}</del> <span aria-hidden="true">→</span> <ins>${data(now)}</ins>`]];
  return Object.keys({ ...old, ...now }).flatMap((name) => differences(old[name], now[name], at ? `${at} › ${name}` : name));
}

/** What was changed, old and new. @param {unknown} old @param {unknown} now */
export const changes = (old, now) => rows(differences(old, now));

/** What is rendered when somebody wants to see it. @param {string} label @param {() => unknown} content @param {unknown} [brief] What stands there before. */
const fold = (label, content, brief) => html`<timbal-fold .label=${label} .content=${content} .brief=${brief}></timbal-fold>`;

class TimbalFold extends Part {
  static properties = ["label", "content", "brief", "open"];

  constructor() {
    super();
    this.label = "";
    this.open = false;
    this.content = this.brief = /** @type {any} */ (undefined);
  }

  render() {
    const button = html`<button type="button" class="quiet small" aria-expanded=${this.open} @click=${() => (this.open = !this.open)}>${this.open ? "Show less" : this.label}</button>`;
    return this.brief ? html`${this.open ? this.content() : this.brief} ${button}` : html`${button}${this.open ? this.content() : nothing}`;
  }
}
customElements.define("timbal-fold", TimbalFold);
