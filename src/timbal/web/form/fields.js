/** How the parts of a form look: one template for each kind of field. */
/** @import { Field, Form, Node } from "./types.js" */
import { html, nothing, repeat } from "../vendor/lit.js";
import { isTag, nameOf, optionalPart } from "./draft.js";
import { alternatives, textOf, titleOf } from "./schema.js";

const FEW = 5;

/** @param {Node} node */
export const idOf = (node) => `field-${node.id}`;

/** @type {Field} */
export function field(node, form) {
  if (isTag(node)) return nothing;
  if (!node.present) return absent(node, form);
  switch (node.kind) {
    case "const":
      return shell(node, html`<output id=${idOf(node)}>${textOf(node.schema.const ?? null)}</output>`);
    case "check":
      return check(node, form);
    case "choice":
      return choices(node).length > FEW ? shell(node, select(node, form)) : radios(node, form);
    case "text":
    case "number":
    case "json":
      return shell(node, node.input === "area" ? area(node, form) : input(node, form));
  }
  return group(node, form);
}

/** What is inside of a group. @type {Field} */
function content(node, form) {
  switch (node.kind) {
    case "many":
      return many(node, form);
    case "list":
    case "dict":
      return entries(node, form);
    case "union":
      return html`<div class="form-field">
          <label for="${idOf(node)}-kind">Kind of ${nameOf(node)}</label>${select(node, form)}
        </div>
        ${parts(node, form)}`;
  }
  return node.kind === "entry" ? html`<div class="form-pair">${parts(node, form)}</div>` : parts(node, form);
}

/** @type {Field} */
const parts = (node, form) => node.children.map((one) => field(one, form));

/** @type {Field} */
const entries = (node, form) =>
  html`${repeat(
    node.children,
    ({ id }) => id,
    (one) => html`<div class="form-entry">${field(one, form)}${removal(one, form, () => form.takeOut(one))}</div>`,
  )}${isLocked(node, form) ? nothing : addButton(`Add to ${nameOf(node)}`, () => form.add(node))}`;

/** Whether it is there to be read only. @param {Node} node @param {Form} form @returns {boolean} */
const isLocked = (node, form) =>
  form.readonly || node.schema.readOnly === true || (node.parent !== undefined && isLocked(node.parent, form));

// Around a field ------------------------------------------------------------------------------------------------------

/** @param {Node} node */
function title(node) {
  const { required, nullable, given, parent, kind, schema } = node;
  const optional =
    (!required || nullable) && (given ?? null) === null && parent && parent.kind !== "list" && kind !== "check";
  const notes = [optional && "(optional)", schema.deprecated && "(deprecated)"].filter(Boolean).join(" ");
  return html`${nameOf(node)}${notes && html` <span class="form-note">${notes}</span>`}`;
}

/** @param {Node} node */
const hintOf = ({ schema, kind }) => [schema.description, kind === "json" && "As JSON."].filter(Boolean).join(" ");

/** @param {Node} node */
const hint = (node) =>
  hintOf(node) ? html`<p class="hint" id="${idOf(node)}-hint">${hintOf(node)}</p>` : nothing;

/** @param {Node} node */
const error = (node) =>
  node.error ? html`<p class="error" role="alert" id="${idOf(node)}-error">${sentence(node.error)}</p>` : nothing;

/** @param {string} words */
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** @param {Node} node */
const describedBy = (node) =>
  [hintOf(node) && `${idOf(node)}-hint`, node.error && `${idOf(node)}-error`].filter(Boolean).join(" ") || nothing;

/** @param {Node} node */
const invalid = (node) => (node.error ? "true" : nothing);

/** @param {Node} node @param {unknown} control */
const shell = (node, control) =>
  html`<div class="form-field">
    <label for=${idOf(node)}>${title(node)}</label>${hint(node)}${control}${error(node)}
  </div>`;

/** @type {Field} */
function group(node, form) {
  // What is asked for as a whole needs no frame, and a branch has that of its union.
  return node.kind === "object" && (!node.parent || node.parent.kind === "union")
    ? html`<div class="form-parts" id=${idOf(node)} tabindex="-1">
        ${hint(node)}${error(node)}${content(node, form)}
      </div>`
    : html`<fieldset class="form-parts form-group" id=${idOf(node)} tabindex="-1" aria-describedby=${describedBy(node)}>
        <legend>${title(node)}</legend>
        ${canLeave(node) ? removal(node, form, () => form.toggle(node)) : nothing}${hint(node)}
        ${content(node, form)}${error(node)}
      </fieldset>`;
}

/** @type {Field} */
const absent = (node, form) =>
  html`<div class="form-field" id=${idOf(node)}>
    <span class="form-label">${title(node)}</span>${hint(node)}
    ${isLocked(node, form) ? html`<output>None</output>` : addButton(`Add ${nameOf(node)}`, () => form.toggle(node))}
    ${error(node)}
  </div>`;

/** @param {string} label @param {() => void} act */
const addButton = (label, act) => html`<button type="button" class="small form-add" @click=${act}>${label}</button>`;

/** Whether it can be left out again: an entry is taken out of its list instead. @param {Node} node */
const canLeave = (node) => optionalPart(node) && node.parent?.kind !== "list";

/** @param {Node} node @param {Form} form @param {() => void} act */
const removal = (node, form, act) =>
  isLocked(node, form)
    ? nothing
    : html`<button type="button" class="small form-remove" aria-label="Remove ${nameOf(node)}" @click=${act}>Remove</button>`;

// Text ----------------------------------------------------------------------------------------------------------------

/** @param {Node} node */
const placeholder = ({ schema, kind }) =>
  schema.examples && kind !== "json"
    ? textOf(schema.examples[0]).slice(0, 99)
    : schema.format === "duration"
      ? "PT2H30M"
      : nothing;

/** @param {Node} node @param {Form} form */
const typing = (node, form) => (/** @type {{target: HTMLInputElement}} */ event) =>
  form.edit(node, () => (node.text = event.target.value));

/** @type {Field} */
function input(node, form) {
  const control = html`<input
    id=${idOf(node)}
    type=${node.input}
    step="any"
    inputmode=${node.kind === "number" ? "decimal" : nothing}
    autocomplete=${node.input === "password" ? "new-password" : "off"}
    placeholder=${placeholder(node)}
    aria-invalid=${invalid(node)}
    aria-describedby=${describedBy(node)}
    ?readonly=${isLocked(node, form)}
    .value=${node.text}
    @input=${typing(node, form)}
    @blur=${() => form.leave(node)}
  />`;
  return node.input === "datetime-local" ? html`<div class="form-pair">${control}${zones(node, form)}</div>` : control;
}

/** @type {Field} */
function zones(node, form) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = new Map([
    ["local", `Local time (${own})`],
    ["Z", "UTC"],
    ["", "No time zone"],
  ]);
  if (!known.has(node.zone)) known.set(node.zone, `UTC${node.zone}`);
  return html`<select
    aria-label="Time zone of ${nameOf(node)}"
    ?disabled=${isLocked(node, form)}
    @change=${(/** @type {any} */ event) => form.edit(node, () => (node.zone = event.target.value))}
  >
    ${[...known].map(([zone, label]) => option(zone, label, zone === node.zone))}
  </select>`;
}

/** @type {Field} */
const area = (node, form) =>
  html`<textarea
    id=${idOf(node)}
    class=${node.kind === "json" ? "code" : nothing}
    rows=${Math.min(12, Math.max(3, node.text.split("\n", 12).length))}
    placeholder=${placeholder(node)}
    aria-invalid=${invalid(node)}
    aria-describedby=${describedBy(node)}
    ?readonly=${isLocked(node, form)}
    .value=${node.text}
    @input=${typing(node, form)}
    @blur=${() => form.leave(node)}
  ></textarea>`;

// Choices -------------------------------------------------------------------------------------------------------------

/** What can be chosen, by index; -1 is none of them. @param {Node} node @returns {[number, string][]} */
function choices({ kind, options, schema, root, nullable, required }) {
  const labels =
    kind === "union" ? alternatives(schema)?.map((one) => titleOf(one, root)) : options.map(({ label }) => label);
  /** @type {[number, string][]} */
  const all = labels?.map((label, index) => [index, label]) ?? [];
  return nullable || !required ? [...all, [-1, nullable ? "None" : "Not given"]] : all;
}

/**
 * A box, or one of several buttons.
 * @param {string} type
 * @param {Node} node
 * @param {Form} form
 * @param {boolean} checked
 * @param {(checked: boolean) => void} change
 * @param {unknown} label
 */
const tick = (type, node, form, checked, change, label) =>
  html`<label class="form-option"
    ><input
      type=${type}
      name=${idOf(node)}
      ?disabled=${isLocked(node, form)}
      .checked=${checked}
      @change=${(/** @type {any} */ event) => form.edit(node, () => change(event.target.checked))}
    />${label}</label
  >`;

/** @type {Field} */
const check = (node, form) =>
  html`<div class="form-field" id=${idOf(node)}>
    ${tick("checkbox", node, form, node.chosen === 0, (checked) => (node.chosen = checked ? 0 : 1), title(node))}
    ${hint(node)}${error(node)}
  </div>`;

/** @type {Field} */
const radios = (node, form) =>
  html`<fieldset
    class="form-field"
    id=${idOf(node)}
    role="radiogroup"
    aria-invalid=${invalid(node)}
    aria-describedby=${describedBy(node)}
  >
    <legend>${title(node)}</legend>
    ${hint(node)}
    ${choices(node).map(([index, label]) =>
      tick("radio", node, form, index === node.chosen, () => (node.chosen = index), label),
    )}
    ${error(node)}
  </fieldset>`;

/** @type {Field} */
const many = (node, form) =>
  html`<div class="form-field">
    ${node.options.map(({ label }, index) =>
      tick(
        "checkbox",
        node,
        form,
        node.picked.has(index),
        (checked) => node.picked[checked ? "add" : "delete"](index),
        label,
      ),
    )}
  </div>`;

/** @type {Field} */
function select(node, form) {
  const all = choices(node);
  return html`<select
    id="${idOf(node)}${node.kind === "union" ? "-kind" : ""}"
    aria-invalid=${invalid(node)}
    aria-describedby=${describedBy(node)}
    ?disabled=${isLocked(node, form)}
    @change=${(/** @type {any} */ event) => form.choose(node, Number(event.target.value))}
  >
    ${all.some(([index]) => index < 0) ? nothing : option(-1, "Choose...", node.chosen < 0)}
    ${all.map(([index, label]) => option(index, label, index === node.chosen))}
  </select>`;
}

/** @param {string | number} value @param {string} label @param {boolean} selected */
const option = (value, label, selected) => html`<option value=${value} .selected=${selected}>${label}</option>`;
