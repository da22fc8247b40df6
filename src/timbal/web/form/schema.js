/** What a JSON Schema asks for, as pydantic writes it: pure functions. */
/** @import { Kind, Option, Schema } from "./types.js" */

/** @param {any} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema with its references and `allOf` put in. @param {any} schema @param {Schema} root @returns {Schema} */
export function resolve(schema, root, hops = 16) {
  for (; hops > 0 && isObject(schema); hops--) {
    if (schema.$ref !== undefined) {
      const { $ref, ...own } = schema;
      schema = { ...at(root, $ref), ...own };
    } else if (schema.allOf) {
      const { allOf, ...own } = schema;
      schema = [...allOf.map((/** @type {any} */ one) => resolve(one, root, hops - 1)), own].reduce(merge);
    } else {
      return schema;
    }
  }
  return {};
}

/** @param {Schema} a @param {Schema} b @returns {Schema} */
function merge(a, b) {
  const both = { ...a, ...b };
  if (a.properties && b.properties) both.properties = { ...a.properties, ...b.properties };
  if (a.required && b.required) both.required = [...a.required, ...b.required];
  return both;
}

/** @param {Schema} root @param {string} pointer */
function at(root, pointer) {
  /** @type {any} */
  let found = root;
  for (const part of pointer.split("/").slice(1)) {
    found = found?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return found;
}

/** The alternatives of a union. @param {Schema} schema @returns {any[] | undefined} */
export function alternatives(schema) {
  if (Array.isArray(schema.type)) return schema.type.map((type) => ({ ...schema, type }));
  return schema.anyOf ?? schema.oneOf;
}

/** Take `null` out of the alternatives. @param {Schema} schema @param {Schema} root @returns {[Schema, boolean]} */
export function withoutNull(schema, root) {
  const all = alternatives(schema);
  const rest = all?.filter((one) => resolve(one, root).type !== "null") ?? [];
  if (!all || rest.length === all.length || rest.length === 0) return [schema, false];
  const { anyOf, oneOf, type, ...own } = schema;
  return [rest.length === 1 ? { ...resolve(rest[0], root), ...own } : { ...own, anyOf: rest }, true];
}

/** What pydantic makes of a Decimal. @param {Schema[]} branches */
const isDecimal = ([number, string, ...more]) =>
  number?.type === "number" && string?.type === "string" && !string.format && more.length === 0;

/** @param {Schema} schema resolved, without null @param {Schema} root @returns {Kind} */
export function kindOf(schema, root) {
  if ("const" in schema || schema.type === "null") return "const";
  if (schema.enum) return "choice";
  const branches = alternatives(schema)?.map((one) => resolve(one, root));
  if (branches) return isDecimal(branches) ? "number" : branches.every((one) => "const" in one) ? "choice" : "union";
  switch (schema.type) {
    case "string":
      return "text";
    case "boolean":
      return "choice";
    case "integer":
    case "number":
      return "number";
    case "array":
      if (schema.prefixItems) return schema.items ? "json" : "tuple";
      return schema.uniqueItems && resolve(schema.items, root).enum ? "many" : "list";
    case "object":
      if (Object.keys(schema.properties ?? {}).length) return "object";
      return schema.additionalProperties === false ? "json" : "dict";
  }
  return schema.properties ? "object" : "json";
}

/** Whether a value can be shown by a field of this kind. @param {Kind} kind @param {any} value */
export function fits(kind, value) {
  if (kind === "object" || kind === "dict") return isObject(value);
  if (kind === "list" || kind === "tuple" || kind === "many") return Array.isArray(value);
  if (kind === "text") return typeof value === "string";
  return kind !== "number" || !(typeof value === "object" || typeof value === "boolean") || "rawJSON" in Object(value);
}

/** What there is to choose from. @param {Schema} schema @param {Schema} root @returns {Option[]} */
export function optionsOf(schema, root) {
  if (schema.type === "boolean" && !schema.enum) return [option(true), option(false)];
  if ("const" in schema) return [option(schema.const)];
  const constants = alternatives(schema)?.map((one) => resolve(one, root));
  return (
    constants?.map((one) => option(one.const, one.title)) ?? schema.enum.map((/** @type {any} */ one) => option(one))
  );
}

/** @param {any} value @param {string} [title] @returns {Option} */
export const option = (value, title) => ({ label: visible(title) ?? textOf(value), value });

/** A value in words. @param {any} value */
export function textOf(value) {
  if (typeof value === "string") return visible(value) ?? "(empty)";
  return { true: "Yes", false: "No", null: "None" }[String(value)] ?? asText(value);
}

/** A value as one types it. @param {any} value @returns {string} */
export function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

const NAMES = /** @type {Record<string, string>} */ ({
  string: "Text",
  integer: "Whole number",
  number: "Number",
  boolean: "Yes or no",
  null: "None",
  array: "List",
  object: "Details",
});

/** What a branch of a union is called. @param {any} schema @param {Schema} root @returns {string} */
export function titleOf(schema, root, depth = 2) {
  const { title, format, type, items, ...found } = resolve(schema, root);
  const values = found.enum ?? ("const" in found ? [found.const] : undefined);
  const parts =
    values?.map(textOf) ?? (depth ? alternatives(found)?.map((one) => titleOf(one, root, depth - 1)) : undefined);
  const list = items && depth ? `List: ${titleOf(items, root, depth - 1)}` : undefined;
  return visible(title) ?? parts?.join(" / ") ?? list ?? (format ? humanise(format) : (NAMES[type] ?? "Anything"));
}

/** A text that can be seen, or undefined. @param {any} text @returns {string | undefined} */
export const visible = (text) => (/[\p{L}\p{N}\p{P}\p{S}]/u.test(text ?? "") ? text : undefined);

/** `due_date` as a label. @param {string} name */
export function humanise(name) {
  const words = name.replace(/[_-]+/g, " ").trim();
  return visible(words.charAt(0).toUpperCase() + words.slice(1)) ?? "(no name)";
}
