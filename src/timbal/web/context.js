// What all parts of the page share: the server, what it serves, and the inbox as it is now.

import { Client } from "./client.js";
import { Inbox } from "./inbox-state.js";

/** @type {{runnables: {name: string, type: string, description: string, at: string}[], by: {sub: string, roles: string[]} | null, now: number}} */
export const served = JSON.parse(document.body.dataset.served ?? `{"runnables": [], "by": null, "now": ${Date.now()}}`);

export const base = new URL("..", import.meta.url);
export const client = new Client({ base });
export const inbox = new Inbox(client);

/** What this tab keeps over a reload, where the browser lets it. @param {string} key @returns {any} */
export function kept(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} key @param {unknown} value Undefined for nothing. */
export function keep(key, value) {
  try {
    if (value === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Too long, or the browser keeps nothing: then it lives as long as the page.
  }
}

/** Whether the person may do this, as far as their roles tell. @param {"run" | "answer" | "admin"} role */
export function may(role) {
  return served.by === null || served.by.roles.includes(role) || served.by.roles.includes("admin");
}

/** The one at the root first. */
export const runnables = [...served.runnables].sort((a, b) => Number(b.at === "") - Number(a.at === ""));

const skew = served.now - Date.now();
/** The time as the server has it: the clock here may be wrong. */
export const now = () => Date.now() + skew;

/** Say something to those who don't see the page. @param {string} text */
export function announce(text) {
  document.dispatchEvent(new CustomEvent("timbal-announce", { detail: text }));
}

/** Whether a key is meant for a field, and not for the page. @param {KeyboardEvent} event */
export function isTyping(event) {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), textarea, select"));
}
