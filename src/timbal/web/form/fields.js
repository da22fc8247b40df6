/** How the parts of a form look: one template for each kind of field. */
import { html, live, nothing, repeat } from "../vendor/lit.js";
import { isTag, nameOf, optionalPart } from "./draft.js";
import { alternatives, textOf, titleOf } from "./schema.js";

/**
 * @typedef {import("./draft.js").Node} Node
 * @typedef {object} Form what the fields need of the element
 * @property {(node: Node, change: () => void) => void} edit
 * @property {(node: Node) => void} leave
 * @property {(node: Node) => void} add
 * @property {(node: Node) => void} takeOut
 * @property {(node: Node, present: boolean) => void} toggle
 * @property {(node: Node, index: number) => void} choose
 */

const FEW = 5;

/** @param {Node} node */
export const idOf = (node) => `field-${node.id}`;

/** @param {Node} node @param {Form} form @param {boolean} locked @returns {unknown} */
export function field(node, form, locked) {
  if (isTag(node)) return nothing;
  if (!node.present) return absent(node, form, locked);
  const closed = locked || node.schema.readOnly === true;
  switch (node.kind) {
    case "const":
      return shell(node, html`<output id=${idOf(node)} class="form-const">${textOf(node.schema.const ?? null)}</output>`);
    case "check":
      return check(node, form, closed);
    case "choice":
      return choices(node).length > FEW ? shell(node, options(node, form, closed)) : radios(node, form, closed);
    case "many":
      return group(node, form, closed, many(node, form, closed));
    case "object":
    case "tuple":
      return group(node, form, closed, parts(node, form, closed));
    case "list":
    case "dict":
      return group(node, form, closed, entries(node, form, closed));
    case "entry":
      return group(node, form, closed, html`<div class="form-pair">${parts(node, form, closed)}</div>`);
    case "union":
      return group(node, form, closed, union(node, form, closed));
    case "json":
      return shell(node, area(node, form, closed), "As JSON.");
    case "number":
      return shell(node, input(node, form, closed, "text"));
    default:
      return shell(node, node.input === "area" ? area(node, form, closed) : input(node, form, closed, node.input));
  }
}

// Around a field ----------------------------------------------------------------------------------------------------------

/** @param {Node} node */
function title(node) {
  const optional = (!node.required || node.nullable) && (node.given === undefined || node.given === null);
  const plain = optional && node.parent && node.parent.kind !== "list" && node.kind !== "check";
  return html`${nameOf(node)}${plain ? html` <span class="form-note">(optional)</span>` : nothing}${
    node.schema.deprecated ? html` <span class="form-note">(deprecated)</span>` : nothing
  }`;
}

/** @param {Node} node @param {string} [more] */
function hint(node, more = "") {
  const text = [node.schema.description, more].filter(Boolean).join(" ");
  return text ? html`<p class="form-hint" id="${idOf(node)}-hint">${text}</p>` : nothing;
}

/** @param {Node} node */
const error = (node) =>
  node.error ? html`<p class="form-error" role="alert" id="${idOf(node)}-error">${sentence(node.error)}</p>` : nothing;

/** @param {string} words */
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** @param {Node} node @param {string} [more] */
const describedBy = (node, more) =>
  [(node.schema.description || more) && `${idOf(node)}-hint`, node.error && `${idOf(node)}-error`].filter(Boolean).join(" ") ||
  nothing;

/** @param {Node} node @param {unknown} content @param {string} [more] */
const shell = (node, content, more) =>
  html`<div class="form-field">
    <label for=${idOf(node)}>${title(node)}</label>${hint(node, more)}${content}${error(node)}
  </div>`;

/** @param {Node} node @param {Form} form @param {boolean} locked @param {unknown} content */
function group(node, form, locked, content) {
  // What is asked for as a whole needs no frame, and a branch has that of its union.
  const bare = node.kind === "object" && (!node.parent || node.parent.kind === "union");
  if (bare) return html`<div class="form-parts" id=${idOf(node)} tabindex="-1">${hint(node)}${error(node)}${content}</div>`;
  const removal = optionalPart(node) && !locked;
  return html`<fieldset class="form-group" id=${idOf(node)} tabindex="-1" aria-describedby=${describedBy(node)}>
    <legend>${title(node)}</legend>
    ${removal ? removeButton(node, () => form.toggle(node, false)) : nothing}${hint(node)}${content}${error(node)}
  </fieldset>`;
}

/** @param {Node} node @param {Form} form @param {boolean} locked */
const absent = (node, form, locked) =>
  html`<div class="form-field" id=${idOf(node)}>
    <span>${title(node)}</span>${hint(node)}
    ${locked ? html`<span class="form-const">None</span>` : addButton(`Add ${nameOf(node)}`, () => form.toggle(node, true))}${error(node)}
  </div>`;

/** @param {string} label @param {() => void} act */
const addButton = (label, act) => html`<button type="button" class="form-add" @click=${act}>${label}</button>`;

/** @param {Node} node @param {() => void} act */
const removeButton = (node, act) =>
  html`<button type="button" class="form-remove" aria-label="Remove ${nameOf(node)}" @click=${act}>Remove</button>`;

// Text --------------------------------------------------------------------------------------------------------------------

/** @param {Node} node */
function placeholder({ schema, kind }) {
  const example = schema.examples?.[0] ?? (schema.format === "duration" ? "PT2H30M" : undefined);
  return example === undefined || kind === "json" ? nothing : textOf(example);
}

/** @param {Node} node @param {Form} form */
const typing = (node, form) => (/** @type {{target: HTMLInputElement | HTMLTextAreaElement}} */ event) =>
  form.edit(node, () => (node.text = event.target.value));

/** @param {Node} node @param {Form} form @param {boolean} locked @param {string} type */
function input(node, form, locked, type) {
  const mode = node.kind !== "number" ? nothing : node.schema.type === "integer" && node.schema.minimum >= 0 ? "numeric" : "decimal";
  const control = html`<input
    id=${idOf(node)}
    type=${type}
    step=${type === "text" ? nothing : "any"}
    inputmode=${node.kind === "number" && node.schema.minimum >= 0 ? mode : nothing}
    autocomplete=${type === "password" ? "new-password" : "off"}
    placeholder=${placeholder(node)}
    aria-invalid=${node.error ? "true" : nothing}
    aria-describedby=${describedBy(node)}
    ?readonly=${locked}
    .value=${live(node.text)}
    @input=${typing(node, form)}
    @blur=${() => form.leave(node)}
  />`;
  return type === "datetime-local" ? html`<div class="form-pair">${control}${zones(node, form, locked)}</div>` : control;
}

/** @param {Node} node @param {Form} form @param {boolean} locked */
function zones(node, form, locked) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = new Map([["local", `Local time (${own})`], ["Z", "UTC"], ["", "No time zone"]]);
  if (!known.has(node.zone)) known.set(node.zone, `UTC${node.zone}`);
  return html`<select
    aria-label="Time zone of ${nameOf(node)}"
    ?disabled=${locked}
    @change=${(/** @type {any} */ event) => form.edit(node, () => (node.zone = event.target.value))}
  >
    ${[...known].map(([zone, label]) => html`<option value=${zone} .selected=${live(zone === node.zone)}>${label}</option>`)}
  </select>`;
}

/** @param {Node} node @param {Form} form @param {boolean} locked */
const area = (node, form, locked) =>
  html`<textarea
    id=${idOf(node)}
    class=${node.kind === "json" ? "form-code" : nothing}
    rows=${Math.min(12, Math.max(3, node.text.split("\n", 12).length))}
    spellcheck=${node.kind === "json" ? "false" : nothing}
    placeholder=${placeholder(node)}
    aria-invalid=${node.error ? "true" : nothing}
    aria-describedby=${describedBy(node, node.kind === "json" ? "json" : "")}
    ?readonly=${locked}
    .value=${live(node.text)}
    @input=${typing(node, form)}
    @blur=${() => form.leave(node)}
  ></textarea>`;

// Choices -----------------------------------------------------------------------------------------------------------------

/** What can be chosen, by index; -1 is none of them. @param {Node} node @returns {[number, string][]} */
function choices({ options, nullable, required }) {
  /** @type {[number, string][]} */
  const all = options.map((one, index) => [index, one.label]);
  return nullable ? [...all, [-1, "None"]] : required ? all : [...all, [-1, "Not given"]];
}

/** @param {Node} node @param {Form} form @param {boolean} locked */
const check = (node, form, locked) =>
  html`<div class="form-field">
    <label class="form-option"
      ><input
        type="checkbox"
        id=${idOf(node)}
        aria-describedby=${describedBy(node)}
        ?disabled=${locked}
        .checked=${live(node.options[node.chosen]?.value === true)}
        @change=${(/** @type {any} */ event) => form.edit(node, () => (node.chosen = event.target.checked ? 0 : 1))}
      />${title(node)}</label
    >${hint(node)}${error(node)}
  </div>`;

/** @param {Node} node @param {Form} form @param {boolean} locked */
const radios = (node, form, locked) =>
  html`<fieldset
    class="form-field"
    id=${idOf(node)}
    role="radiogroup"
    aria-invalid=${node.error ? "true" : nothing}
    aria-describedby=${describedBy(node)}
  >
    <legend>${title(node)}</legend>
    ${hint(node)}
    ${choices(node).map(
      ([index, label]) =>
        html`<label class="form-option"
          ><input
            type="radio"
            name=${idOf(node)}
            ?disabled=${locked}
            .checked=${live(index === node.chosen && (index >= 0 || !node.required || node.nullable))}
            @change=${() => form.edit(node, () => (node.chosen = index))}
          />${label}</label
        >`,
    )}${error(node)}
  </fieldset>`;

/** @param {Node} node @param {Form} form @param {boolean} locked */
const options = (node, form, locked) => select(node, choices(node), locked, (index) => form.edit(node, () => (node.chosen = index)));

/** @param {Node} node @param {[number, string][]} all @param {boolean} locked @param {(index: number) => void} act */
const select = (node, all, locked, act) =>
  html`<select
    id=${node.kind === "union" ? `${idOf(node)}-kind` : idOf(node)}
    aria-invalid=${node.error ? "true" : nothing}
    aria-describedby=${describedBy(node)}
    ?disabled=${locked}
    @change=${(/** @type {any} */ event) => act(Number(event.target.value))}
  >
    ${all.some(([index]) => index < 0) ? nothing : html`<option value="-1" .selected=${live(node.chosen < 0)}>Choose...</option>`}
    ${all.map(([index, label]) => html`<option value=${index} .selected=${live(index === node.chosen)}>${label}</option>`)}
  </select>`;

/** @param {Node} node @param {Form} form @param {boolean} locked */
const many = (node, form, locked) =>
  node.options.map(
    ({ label }, index) =>
      html`<label class="form-option"
        ><input
          type="checkbox"
          ?disabled=${locked}
          .checked=${live(node.picked.has(index))}
          @change=${(/** @type {any} */ event) =>
            form.edit(node, () => void (event.target.checked ? node.picked.add(index) : node.picked.delete(index)))}
        />${label}</label
      >`,
  );

// Parts -------------------------------------------------------------------------------------------------------------------

/** @param {Node} node @param {Form} form @param {boolean} locked */
const parts = (node, form, locked) => node.children.map((one) => field(one, form, locked));

/** @param {Node} node @param {Form} form @param {boolean} locked */
const entries = (node, form, locked) =>
  html`${repeat(
    node.children,
    (one) => one.id,
    (one) =>
      html`<div class="form-entry">
        ${field(one, form, locked)}${locked ? nothing : removeButton(one, () => form.takeOut(one))}
      </div>`,
  )}${locked ? nothing : addButton(`Add to ${nameOf(node)}`, () => form.add(node))}`;

/** @param {Node} node @param {Form} form @param {boolean} locked */
function union(node, form, locked) {
  /** @type {[number, string][]} */
  const all = (alternatives(node.schema) ?? []).map((one, index) => [index, titleOf(one, node.root)]);
  if (node.nullable || !node.required) all.push([-1, node.nullable ? "None" : "Not given"]);
  return html`<div class="form-field">
      <label for="${idOf(node)}-kind">Kind of ${nameOf(node)}</label>${select(node, all, locked, (index) => form.choose(node, index))}
    </div>
    ${parts(node, form, locked)}`;
}
