/**
 * What is wrong with a value by itself, in plain words. Only rules on which this page and pydantic agree are here: the
 * server, which has the last word, checks the others.
 */
import { isObject } from "./schema.js";

export const MISSING = "must be filled in";
export const UNCHOSEN = "must be chosen";
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

/** @param {number} number @param {string} one @param {string} many */
const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;
/** @param {number} number */
const characters = (number) => count(number, "character", "characters");
/** @param {number} number */
const entries = (number) => count(number, "entry", "entries");
/** @param {any} value */
const size = (value) => (typeof value === "string" ? [...value].length : Object.keys(value).length);

/** By keyword: when it is broken, and what to say then. @type {Record<string, [(value: any, limit: any) => boolean, (limit: any) => string]>} */
const RULES = {
  minLength: [(value, limit) => size(value) < limit, (limit) => `must have at least ${characters(limit)}`],
  maxLength: [(value, limit) => size(value) > limit, (limit) => `must have at most ${characters(limit)}`],
  pattern: [(value, limit) => !matches(value, limit), (limit) => `must match the pattern ${limit}`],
  format: [(value, limit) => !(FORMATS[limit]?.[0].test(value) ?? true), (limit) => `must be ${FORMATS[limit]?.[1]}`],
  minimum: [(value, limit) => value < limit, (limit) => `must be at least ${limit}`],
  maximum: [(value, limit) => value > limit, (limit) => `must be at most ${limit}`],
  exclusiveMinimum: [(value, limit) => value <= limit, (limit) => `must be more than ${limit}`],
  exclusiveMaximum: [(value, limit) => value >= limit, (limit) => `must be less than ${limit}`],
  multipleOf: [(value, limit) => !isMultiple(value, limit), (limit) => `must be a multiple of ${limit}`],
  minItems: [(value, limit) => size(value) < limit, (limit) => `must have at least ${entries(limit)}`],
  maxItems: [(value, limit) => size(value) > limit, (limit) => `must have at most ${entries(limit)}`],
  uniqueItems: [(value, limit) => limit && hasTwins(value), () => "must not have the same entry twice"],
  minProperties: [(value, limit) => size(value) < limit, (limit) => `must have at least ${entries(limit)}`],
  maxProperties: [(value, limit) => size(value) > limit, (limit) => `must have at most ${entries(limit)}`],
};

/** The first complaint about a value, not about its parts, or "". @param {Record<string, any>} schema @param {any} value @returns {string} */
export function complaint(schema, value) {
  const type = TYPES[schema.type];
  if (type && !type[0](value)) return `must be ${type[1]}`;
  for (const [keyword, [isBroken, say]] of Object.entries(RULES)) {
    if (keyword in schema && isBroken(value, schema[keyword])) return say(schema[keyword]);
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
