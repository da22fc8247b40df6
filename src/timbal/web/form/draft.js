/** What a person has filled in so far: a tree beside the schema, which becomes a value when it is read. */
/** @import { Node, Schema } from "./types.js" */
import * as words from "./messages.js";
import * as read from "./schema.js";

const INPUTS = /** @type {Record<string, string>} */ ({
  email: "email",
  password: "password",
  uri: "url",
  date: "date",
  time: "time",
  "date-time": "datetime-local",
});
const NATIVE = /** @type {Record<string, RegExp>} */ ({
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/,
  "datetime-local": /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/,
});
const ZONE = /(Z|[+-]\d\d:?\d\d)$/i;
const LOCAL = "local";
const MANY = 20;
let ids = 0;

/**
 * @param {Schema} root
 * @param {any} schema
 * @param {any} value
 * @param {{label?: string, name?: string, parent?: Node, required?: boolean}} where
 * @returns {Node}
 */
export function grow(root, schema, value, { label, name, parent, required = true }) {
  const [own, nullable] = read.withoutNull(read.resolve(schema, root), root);
  const given = value === undefined ? own.default : value;
  /** @type {Node} */
  const node = {
    ...{ id: ++ids, kind: read.kindOf(own, root), root, schema: own, label, name, parent, required, nullable },
    ...{ given: given === null && !nullable && own.type !== "null" ? undefined : given, edited: false },
    ...{ text: "", zone: "", input: "text", options: [], picked: new Set(), chosen: -1 },
    ...{ children: [], branches: new Map(), present: true, error: "" },
  };
  if (node.kind === "const" && nullable) node.kind = "choice";
  const filled = node.given !== undefined && node.given !== null;
  if (filled && !read.fits(node.kind, node.given)) node.kind = "json";
  node.present = filled || !optionalPart(node);
  if (node.present) fill(node);
  return node;
}

/** Whether it is filled in only if the person asks for it. @param {Node} node */
export function optionalPart({ kind, nullable, required }) {
  if (["list", "dict", "many"].includes(kind)) return nullable;
  return (kind === "object" || kind === "tuple") && (nullable || !required);
}

/** Put in what is given. @param {Node} node */
export function fill(node) {
  const { kind, root, schema, given } = node;
  switch (kind) {
    case "object":
      node.children = Object.entries(schema.properties).map(([name, property]) => {
        const required = schema.required?.includes(name) ?? false;
        const part = isOwn(given, name) ? given[name] : undefined;
        return grow(root, property, part, { label: labelOf(property, name), name, parent: node, required });
      });
      break;
    case "tuple":
      node.children = schema.prefixItems.map((/** @type {any} */ one, /** @type {number} */ index) =>
        grow(root, one, given?.[index], {
          label: read.visible(one.title),
          parent: node,
          required: index < (schema.minItems ?? Infinity),
        }),
      );
      break;
    case "list":
      for (const one of given ?? Array(Math.min(schema.minItems ?? 0, MANY)).fill(undefined)) add(node, one);
      break;
    case "dict":
      for (const [name, one] of Object.entries(given ?? {})) add(node, one, name);
      break;
    case "many":
      node.options = read.optionsOf(read.resolve(schema.items, root), root);
      node.picked = new Set((given ?? []).map((/** @type {any} */ one) => optionOf(node, one)));
      if (node.picked.has(-1)) fillJson(node);
      break;
    case "choice":
      node.options = read.optionsOf(schema, root);
      node.chosen = given === undefined ? -1 : optionOf(node, given);
      if (given !== undefined && given !== null && node.chosen < 0) fillJson(node);
      else if (schema.type === "boolean" && given !== undefined && !node.nullable) node.kind = "check";
      break;
    case "union":
      if (given === undefined || given === null) break;
      node.chosen = branchOf(node);
      if (node.chosen < 0) fillJson(node);
      else choose(node, node.chosen, given);
      break;
    case "number":
      node.text = given === undefined || given === null ? "" : (given.rawJSON ?? read.asText(given));
      break;
    case "text":
      fillText(node);
      break;
    case "json":
      fillJson(node);
  }
}

/** @param {Node} node */
function fillText(node) {
  const { schema, given } = node;
  node.input = schema.writeOnly ? "password" : (INPUTS[schema.format] ?? "text");
  node.text = given ?? "";
  if (node.input === "datetime-local") {
    node.zone = given ? (node.text.match(ZONE)?.[0] ?? "") : LOCAL;
    node.text = node.text.replace(ZONE, "");
  }
  const shown = NATIVE[node.input];
  if (given && shown && !shown.test(node.text)) {
    // A browser would show nothing of it, or less: microseconds, a time with a zone, words.
    [node.input, node.text, node.zone] = ["text", given, ""];
  }
  const long = !schema.format && (schema.maxLength > 200 || schema.contentMediaType);
  if (node.input === "text" && (long || schema.format === "textarea" || /\n|.{100}/.test(node.text)))
    node.input = "area";
}

/** @param {Node} node */
function fillJson(node) {
  node.kind = "json";
  node.input = "area";
  node.text = node.given === undefined ? "" : JSON.stringify(node.given, null, 2);
}

/** @param {any} property @param {string} name */
const labelOf = (property, name) => read.visible(property?.title) ?? read.humanise(name);

/** @param {any} value @param {string} name */
const isOwn = (value, name) => Object.prototype.hasOwnProperty.call(Object(value), name);

/** @param {Node} node @param {any} value */
const optionOf = (node, value) => node.options.findIndex((one) => one.value === value);

/** Add an entry to a list or a dict. @param {Node} node @param {any} [value] @param {string} [name] @returns {Node} */
export function add(node, value, name) {
  const { root, schema } = node;
  const item = node.kind === "list" ? (schema.items ?? {}) : dictItem(schema);
  const parent = node;
  const label = read.visible(read.withoutNull(read.resolve(item, root), root)[0].title);
  if (node.kind === "list") return push(node, grow(root, item, value, { label, parent }));
  const entry = { ...grow(root, {}, undefined, { parent }), kind: /** @type {const} */ ("entry") };
  const pattern = Object.keys(schema.patternProperties ?? {})[0];
  const key = schema.propertyNames ?? { type: "string", ...(pattern === undefined ? {} : { pattern }) };
  entry.children = [
    grow(root, key, name, { label: "Key", parent: entry }),
    grow(root, item, value, { label: "Value", parent: entry }),
  ];
  return push(node, entry);
}

/** @param {Schema} schema */
const dictItem = (schema) => Object.values(schema.patternProperties ?? {})[0] ?? schema.additionalProperties ?? {};

/** @param {Node} node @param {Node} child */
function push(node, child) {
  node.children.push(child);
  return child;
}

/**
 * Choose an option, or a branch of a union: what was filled in before is kept.
 * @param {Node} node
 * @param {number} index
 * @param {any} [value]
 */
export function choose(node, index, value) {
  const { root, schema, branches } = node;
  node.chosen = index;
  if (node.kind !== "union") return;
  const branch = read.alternatives(schema)?.[index];
  if (branch && !branches.has(index)) branches.set(index, grow(root, branch, value, { parent: node }));
  node.children = index < 0 ? [] : [/** @type {Node} */ (branches.get(index))];
}

/**
 * The branch that what is given belongs to, or -1: the first that has nothing against it, else the first that has no
 * other tag.
 * @param {Node} node
 */
function branchOf({ root, schema, given }) {
  const drafts = (read.alternatives(schema) ?? []).map((one) => grow(root, one, given, {}));
  const right = drafts.findIndex((one) => [...walk(one)].every((part) => !check(part)));
  if (right >= 0) return right;
  return drafts.findIndex(
    ({ kind, children }) =>
      kind === "object" && children.every((one) => one.kind !== "const" || given[one.name ?? ""] === valueOf(one)),
  );
}

/** Whether it only says which branch this is: the choice says so already. @param {Node} node */
export function isTag({ kind, name, parent }) {
  return (
    kind === "const" && parent?.parent?.kind === "union" && parent.parent.schema.discriminator?.propertyName === name
  );
}

/** What a person calls it; entries are counted. @param {Node} node @returns {string} */
export function nameOf({ label, parent, kind, id }) {
  const name = label ?? (parent ? nameOf(parent) : "");
  if (!parent || !["list", "tuple", "dict"].includes(parent.kind) || (label && parent.kind === "tuple")) return name;
  return `${name}${kind === "entry" ? " entry" : ""} ${parent.children.findIndex((one) => one.id === id) + 1}`;
}

// Reading -------------------------------------------------------------------------------------------------------------

/** What a node is called in a pointer, or undefined if it has the place of its parent. @param {Node} node */
function partOf(node) {
  switch (node.parent?.kind) {
    case "list":
    case "tuple":
      return String(node.parent.children.indexOf(node));
    case "object":
      return node.name;
    case "dict":
      return keyOf(node);
  }
  return undefined;
}

/** @param {Node} entry */
const keyOf = (entry) => String(valueOf(/** @type {Node} */ (entry.children[0])) ?? "");

/** @param {Node} node @returns {string} */
export function pointerOf(node) {
  const part = partOf(node);
  const own = part === undefined ? "" : `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  return node.parent ? pointerOf(node.parent) + own : "";
}

/** The value; undefined leaves it out. @param {Node} node @returns {any} */
export function valueOf(node) {
  const { kind, schema, children, options, chosen } = node;
  if (!node.present) return empty(node);
  switch (kind) {
    case "const":
      return schema.const ?? null;
    case "choice":
    case "check":
      return options[chosen] ? options[chosen].value : empty(node);
    case "many":
      return whole(
        node,
        options.filter((_, index) => node.picked.has(index)).map((one) => one.value),
      );
    case "union":
      return children[0] ? valueOf(children[0]) : empty(node);
    case "object":
      return { ...rest(node), ...fromEntries(children.map((one) => [one.name ?? "", valueOf(one)])) };
    case "dict":
      return whole(node, fromEntries(children.map((one) => [keyOf(one), valueOf(one)])));
    case "entry":
      return valueOf(/** @type {Node} */ (children[1]));
    case "list":
      return whole(
        node,
        children.map((one) => valueOf(one) ?? null),
      );
    case "tuple": {
      const values = children.map(valueOf);
      while (values.length && values.at(-1) === undefined) values.pop();
      return values.map((one) => one ?? null);
    }
  }
  if (!node.edited && node.given !== undefined) return node.given;
  if (node.text === "") return kind === "text" && !node.nullable && isText(node.given) ? "" : empty(node);
  if (kind === "number") return number(node);
  if (kind === "json") return parsed(node.text);
  return node.text + zoneOf(node);
}

/** @param {[string, any][]} entries */
const fromEntries = (entries) => Object.fromEntries(entries.filter(([, value]) => value !== undefined));

/** What is given beside the properties. @param {Node} node */
function rest({ given, schema }) {
  return fromEntries(Object.entries(given ?? {}).filter(([name]) => !isOwn(schema.properties, name)));
}

/** An empty list that nobody asked for is left out: then its default counts. @param {Node} node @param {any} value */
function whole(node, value) {
  const size = Object.keys(value).length;
  return size === 0 && !node.required && node.given === undefined && !node.nullable ? undefined : value;
}

/** @param {Node} node */
const empty = ({ nullable }) => (nullable ? null : undefined);

/** @param {any} value */
const isText = (value) => typeof value === "string";

/** @param {Node} node */
function zoneOf({ text, zone }) {
  if (zone !== LOCAL) return zone;
  const minutes = -new Date(text).getTimezoneOffset();
  const part = (/** @type {number} */ size) => String(Math.floor(size)).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${part(Math.abs(minutes) / 60)}:${part(Math.abs(minutes) % 60)}`;
}

/** Exactly what was typed: as text for a Decimal, as a number, or what JSON writes as one. @param {Node} node */
function number({ text, schema }) {
  const typed = text
    .trim()
    .replace(/^(-?)(?=\.\d)/, "$10")
    .replace(/^\+/, "");
  if (!/^-?\d+(\.\d*)?(e[+-]?\d+)?$/i.test(typed)) return typed;
  if (!schema.type) return typed;
  const rough = Number(typed);
  if (schema.type !== "integer" || Number.isSafeInteger(rough) || !/^-?\d+$/.test(typed)) return rough;
  const exact = BigInt(typed).toString();
  return /** @type {any} */ (JSON).rawJSON?.(exact) ?? exact;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Checking ------------------------------------------------------------------------------------------------------------

/** What is wrong with a node itself, not with its parts, or "". @param {Node} node @returns {string} */
export function check(node) {
  const { kind, schema } = node;
  const value = valueOf(node);
  if (kind === "entry") return "";
  if (kind === "json" && node.text.trim() && value === undefined) return words.NOT_JSON;
  if (kind === "union" && node.children.length) return "";
  if (value === undefined && node.required) {
    return node.options.length || kind === "union" ? words.UNCHOSEN : words.MISSING;
  }
  if (value === undefined || value === null || kind === "const") return "";
  if (isTwice(node)) return words.TWICE;
  if (kind === "number" && !schema.type) {
    const decimal = { ...schema, ...read.alternatives(schema)?.[0] };
    return words.complaint(decimal, Number(value));
  }
  return words.complaint(schema, value?.rawJSON ? Number(value.rawJSON) : value);
}

/** Whether it is the key of an entry, and another entry has the same. @param {Node} node */
function isTwice({ parent, id }) {
  if (parent?.kind !== "entry" || parent.children[0]?.id !== id) return false;
  return parent.parent?.children.some((one) => one.id !== parent.id && keyOf(one) === keyOf(parent)) ?? false;
}

/** All nodes that are there, each before its parts. @param {Node} node @returns {Generator<Node>} */
export function* walk(node) {
  yield node;
  if (node.present) for (const child of node.children) yield* walk(child);
}

/** The node that a pointer leads to, or the nearest one above. @param {Node} node @param {string} pointer */
export function find(node, pointer) {
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    while (node.present && (node.kind === "union" || node.kind === "entry")) {
      const child = node.children.at(-1);
      if (!child) return node;
      node = child;
    }
    const next = node.present && node.children.find((one) => partOf(one) === name);
    if (next) node = next;
    else if (node.parent?.kind !== "union") break; // pydantic names the branch, too
  }
  return node.kind === "entry" ? (node.children[1] ?? node) : node;
}
