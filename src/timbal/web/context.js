// What all parts of the page share: the server, what it serves, and the inbox as it is now.

import { Client } from "./client.js";
import { Inbox } from "./inbox-state.js";

/** @type {{runnables: {name: string, type: string, description: string, at: string}[], by: {sub: string, roles: string[]} | null}} */
export const served = JSON.parse(document.body.dataset.served ?? '{"runnables": [], "by": null}');

export const base = new URL("..", import.meta.url);
export const client = new Client({ base });
export const inbox = new Inbox(client);

/** Whether the person may do this, as far as their roles tell. @param {"run" | "answer" | "admin"} role */
export function may(role) {
  return served.by === null || served.by.roles.includes(role) || served.by.roles.includes("admin");
}

/** The one at the root first. */
export const runnables = [...served.runnables].sort((a, b) => Number(b.at === "") - Number(a.at === ""));

/** Say something to those who don't see the page. @param {string} text */
export function announce(text) {
  document.dispatchEvent(new CustomEvent("timbal-announce", { detail: text }));
}

/** Whether a key is meant for a field, and not for the page. @param {KeyboardEvent} event */
export function isTyping(event) {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), textarea, select"));
}
