/**
 * What is wrong with a value by itself, in plain words. Only rules on which this page and pydantic agree are here: the
 * server, which has the last word, checks the others.
 */
/** @import { Rule, Schema } from "./types.js" */
import { isObject } from "./schema.js";

export const MISSING = "must be filled in";
export const UNCHOSEN = "must be chosen";
export const UNFINISHED = "must be complete";
export const TWICE = "is there twice";
export const NOT_JSON = 'must be JSON: "text" in double quotes, a number, true, false, null, [...] or {...}';

/** @type {Record<string, [RegExp, string]>} */
const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+\.[^\s@]+$/, "an e-mail address, like name@example.com"],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "a web address, like https://example.com"],
  uuid: [/^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i, "a UUID, like 123e4567-e89b-12d3-a456-426614174000"],
  ipv4: [/^(\d{1,3}\.){3}\d{1,3}$/, "an IPv4 address, like 192.0.2.1"],
};

/** @type {Record<string, [(value: any) => boolean, string]>} */
const TYPES = {
  string: [(value) => typeof value === "string", "text"],
  integer: [(value) => Number.isInteger(value), "a whole number"],
  number: [(value) => Number.isFinite(value), "a number"],
  boolean: [(value) => typeof value === "boolean", "true or false"],
  array: [Array.isArray, "a list"],
  object: [isObject, "an object"],
  null: [(value) => value === null, "null"],
};

/** @param {any} value */
const size = (value) => (typeof value === "string" ? [...value].length : Object.keys(value).length);
/** @type {Rule[0]} */
const isSmaller = (value, limit) => size(value) < limit;
/** @type {Rule[0]} */
const isLarger = (value, limit) => size(value) > limit;

/** By keyword: when it is broken, and what to say then; # is the limit. @type {Record<string, Rule>} */
const RULES = {
  enum: [(value, limit) => !limit.includes(value), "must be one of #"],
  minLength: [isSmaller, "must have at least # characters"],
  maxLength: [isLarger, "must have at most # characters"],
  pattern: [(value, limit) => !matches(value, limit), "must match the pattern #"],
  format: [(value, limit) => !(FORMATS[limit]?.[0].test(value) ?? true), "must be #"],
  minimum: [(value, limit) => value < limit, "must be at least #"],
  maximum: [(value, limit) => value > limit, "must be at most #"],
  exclusiveMinimum: [(value, limit) => value <= limit, "must be more than #"],
  exclusiveMaximum: [(value, limit) => value >= limit, "must be less than #"],
  multipleOf: [(value, limit) => !isMultiple(value, limit), "must be a multiple of #"],
  minItems: [isSmaller, "must have at least # entries"],
  maxItems: [isLarger, "must have at most # entries"],
  minProperties: [isSmaller, "must have at least # entries"],
  maxProperties: [isLarger, "must have at most # entries"],
  uniqueItems: [(value, limit) => limit && hasTwins(value), "must not have the same entry twice"],
};

/** The first complaint about a value, not about its parts, or "". @param {Schema} schema @param {any} value */
export function complaint(schema, value) {
  const type = TYPES[schema.type];
  if (type && !type[0](value)) return `must be ${type[1]}`;
  for (const [keyword, [isBroken, words]] of Object.entries(RULES)) {
    const limit = schema[keyword];
    if (limit === undefined || !isBroken(value, limit)) continue;
    const shown = keyword === "format" ? FORMATS[limit]?.[1] : [limit].flat().join(", ");
    return words
      .replace("#", () => shown ?? "")
      .replace(" 1 characters", " 1 character")
      .replace(" 1 entries", " 1 entry");
  }
  return "";
}

/** @param {string} value @param {string} pattern */
function matches(value, pattern) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // one of Python's own
  }
}

/** @param {number} value @param {number} step */
function isMultiple(value, step) {
  const times = value / step;
  return Math.abs(times - Math.round(times)) <= Number.EPSILON * Math.abs(times);
}

/** @param {any[]} values */
const hasTwins = (values) => new Set(values.map((one) => JSON.stringify(one))).size < values.length;
