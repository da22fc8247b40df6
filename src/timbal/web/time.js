// Times in words.

import { now } from "./context.js";
import { html } from "./vendor/lit.js";

const HOUR = 3600, DAY = 24 * HOUR;
/** @type {[string, number][]} */
const UNITS = [["d", DAY], ["h", HOUR], ["min", 60], ["s", 1]];

/** In its two largest units. @param {number} seconds */
function exactly(seconds) {
  const words = [];
  for (const [unit, size] of UNITS) {
    if (words.length === 2 || (!words.length && seconds < size)) continue;
    words.push(`${Math.floor(seconds / size)} ${unit}`);
    seconds %= size;
  }
  return words.join(" ");
}

/** @param {number} seconds */
function about(seconds) {
  if (seconds < HOUR) return `${Math.floor(seconds / 60)} min`;
  return seconds < 2 * DAY ? `${Math.round(seconds / HOUR)} h` : `${Math.round(seconds / DAY)} days`;
}

/** @param {number} ms */
export function took(ms) {
  if (ms < 950) return `${Math.max(Math.round(ms), 1)} ms`;
  return ms < 9500 ? `${(ms / 1000).toFixed(1)} s` : exactly(Math.round(ms / 1000));
}

export const { format: date } = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A moment, without what goes without saying. @param {number} at */
export function moment(at) {
  const day = new Date(at).toDateString() === new Date().toDateString() ? undefined : /** @type {const} */ ("medium");
  return html`<time datetime=${new Date(at).toISOString()}>${new Date(at).toLocaleString(undefined, { dateStyle: day, timeStyle: "short" })}</time>`;
}

/** @type {Set<TimbalTime>} */
const ticking = new Set();
setInterval(() => ticking.forEach((one) => one.tell()), 1000);

/** A time as it is from now. */
class TimbalTime extends HTMLElement {
  at = 0;
  /** In words, by the seconds since then. */
  words = (/** @type {number} */ seconds) => String(seconds);

  connectedCallback() {
    ticking.add(this);
    this.tell();
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  tell() {
    const seconds = (now() - this.at) / 1000;
    const told = this.words(seconds);
    if (super.textContent === told) return;
    super.textContent = told;
    this.title = date(this.at);
    this.classList.toggle("bad", this.words === left && seconds > -300);
  }
}

customElements.define("timbal-time", TimbalTime);

/** @param {(seconds: number) => string} words @returns {(at: number) => unknown} */
const telling = (words) => (at) => html`<timbal-time .words=${words} .at=${at}></timbal-time>`;

/** @param {number} seconds */
function left(seconds) {
  const clock = `${Math.floor(-seconds / 60)}:${String(Math.floor(-seconds % 60)).padStart(2, "0")}`;
  return seconds >= 0 ? "time is over" : `${-seconds < HOUR ? clock : about(-seconds)} left`;
}

/** How long ago it was. */
export const since = telling((seconds) => (seconds < 60 ? "just now" : `${about(seconds)} ago`));
/** How long it is until then. */
export const until = telling(left);
/** How long it lasts already. */
export const lasting = telling((seconds) => (seconds < 1 ? "" : exactly(seconds)));
