// Which element shows a question and takes its answer; docs/renderers.md tells how to bring your own.

/** @type {Map<string, string>} */
const tags = new Map();
/** What tells of `registered` ones. */
export const renderers = new EventTarget();

/** Show questions of this kind by this custom element, also those that are shown already. @param {string} kind @param {string} tag */
export function registerRenderer(kind, tag) {
  tags.set(kind, tag);
  customElements.whenDefined(tag).then(() => renderers.dispatchEvent(new Event("registered")));
}

/** The elements that can show an item, the best one first; the last can show anything. @param {import("./client.js").PendingItem} item */
export function renderersOf({ kind, event }) {
  const own = tags.get(kind) ?? "";
  const plain = event.response_schema ? ["timbal-ask-form", "timbal-ask-json"] : ["timbal-ask-json"];
  const best = event.type === "APPROVAL" ? "timbal-approval" : builtIn(kind, event.payload, event.response_schema);
  return [...(customElements.get(own) ? [own] : []), ...(best ? [best] : []), ...plain];
}

/** @param {string} kind @param {any} payload @param {any} schema */
function builtIn(kind, payload, schema) {
  const options = Array.isArray(payload.options);
  if (schema ? isOf(schema, "boolean") : kind === "confirm") return "timbal-confirm";
  if (schema ? isOf(schema, "string", "enum") : kind === "ask_user") return "timbal-ask";
  if (!schema) return kind === "ask_user_multi" && options ? "timbal-ask" : null;
  const items = schema.items ?? {};
  const several = isOf(schema, "array", "items", "minItems", "maxItems") && isOf(items, "string", "enum") && (items.enum || options);
  return several ? "timbal-ask" : null;
}

/** Whether it says no more than this. @param {any} schema @param {string} type @param {string[]} more */
function isOf(schema, type, ...more) {
  return schema.type === type && Object.keys(schema).every((name) => ["type", "title", "description", ...more].includes(name));
}
