/** `<timbal-form>`: a form for any JSON Schema that pydantic makes, which gives back a value. */
/** @import { Node, Refusal } from "./form/types.js" */
import { add, check, choose, fill, find, grow, pointerOf, valueOf, walk } from "./form/draft.js";
import { field, idOf } from "./form/fields.js";
import { UNFINISHED } from "./form/messages.js";
import { visible } from "./form/schema.js";
import { Part } from "./part.js";
import { html, nothing } from "./vendor/lit.js";

let pressed = false;
for (const name of ["pointerdown", "pointerup", "pointercancel"]) {
  addEventListener(name, () => (pressed = name === "pointerdown"), true);
}

/** When the click that is under way has come to its button, which must not move away before. @returns {Promise<void>} */
function released() {
  return new Promise((go) => {
    const done = () => setTimeout(go);
    if (!pressed) return done();
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, done, { once: true });
  });
}

/** Fires `change` with `detail.value`, the draft so far, on every edit. */
export class TimbalForm extends Part {
  static properties = ["schema", "value", "name", "disabled", "readonly"];

  /** @type {Node | undefined} */
  #root;
  #asked = "";
  #submitted = false;

  constructor() {
    super();
    /** A JSON Schema. @type {any} */
    this.schema = undefined;
    /** What the form starts with: JSON, or undefined for nothing. @type {any} */
    this.value = undefined;
    /** The label of the whole, where the schema has no title. */
    this.name = "Answer";
    /** Nothing can be filled in for now. */
    this.disabled = false;
    /** It is there to be read and copied. */
    this.readonly = false;
  }

  /**
   * What was filled in, or what is wrong with it: then the first wrong field gets the focus.
   * @returns {{value: any} | {errors: Refusal[]}}
   */
  read() {
    const root = this.#tree();
    this.#submitted = true;
    for (const node of walk(root)) node.error = this.#complaint(node);
    const errors = [...walk(root)]
      .filter((one) => one.error)
      .map((one) => ({ pointer: pointerOf(one), message: one.error }));
    this.#showErrors();
    return errors.length ? { errors } : { value: valueOf(root) };
  }

  /** Show what the server said, each beside the field that its JSON pointer leads to. @param {Refusal[]} errors */
  refuse(errors) {
    const root = this.#tree();
    for (const node of walk(root)) node.error = "";
    for (const { pointer, message } of errors) {
      const node = find(root, pointer);
      node.error = node.error ? `${node.error}; ${message}` : message;
    }
    this.#showErrors();
  }

  // For the fields ----------------------------------------------------------------------------------------------------

  /** @param {Node} node @param {() => void} change */
  edit(node, change) {
    change();
    node.edited = true;
    for (let one = /** @type {Node | undefined} */ (node); one; one = one.parent) {
      if (one.error || this.#submitted) one.error = this.#complaint(one);
    }
    this.requestUpdate();
    this.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: { value: valueOf(this.#tree()) } }));
  }

  /** Only what was filled in is judged: an empty field may yet be filled in. @param {Node} node */
  async leave(node) {
    await released();
    // What the server said stands until the field is edited.
    if (!(node.edited || this.#isUnfinished(node)) || (node.error && node.error !== UNFINISHED)) return;
    node.error = this.#complaint(node);
    this.requestUpdate();
  }

  /** @param {Node} node */
  add(node) {
    /** @type {Node} */
    let added = node;
    this.edit(node, () => (added = add(node)));
    this.#focus(added);
  }

  /** @param {Node} entry */
  takeOut(entry) {
    const list = /** @type {Node} */ (entry.parent);
    const index = list.children.indexOf(entry);
    this.edit(list, () => list.children.splice(index, 1));
    this.#focus(
      list.children[Math.min(index, list.children.length - 1)] ?? list,
      list.children.length ? undefined : ".form-add",
    );
  }

  /** @param {Node} node */
  toggle(node) {
    this.edit(node, () => {
      node.present = !node.present;
      if (node.present && !node.children.length) fill(node);
    });
    this.#focus(node);
  }

  /** @param {Node} node @param {number} index */
  choose(node, index) {
    this.edit(node, () => choose(node, index));
  }

  // Inside ------------------------------------------------------------------------------------------------------------

  #tree() {
    this.performUpdate();
    return /** @type {Node} */ (this.#root);
  }

  /** @param {Node} node */
  #complaint(node) {
    return this.#isUnfinished(node) ? UNFINISHED : check(node);
  }

  /** Whether a part of a date or time is missing: the browser tells no text of it. @param {Node} node */
  #isUnfinished(node) {
    return this.find(`#${idOf(node)}`)?.validity?.badInput ?? false;
  }

  #showErrors() {
    const wrong = [...walk(this.#tree())].find((one) => one.error);
    this.requestUpdate();
    if (wrong) this.#focus(wrong);
  }

  /** @param {Node} node @param {string} [part] */
  async #focus(node, part = "input, select, textarea, button:not(.form-remove)") {
    await this.updateComplete;
    const element = this.find(`#${idOf(node)}`);
    const target = element?.matches("input, select, textarea") ? element : (element?.querySelector(part) ?? element);
    target?.focus();
  }

  /**
   * Only another schema or value starts anew: an equal one leaves alone what was typed.
   * @param {Map<PropertyKey, unknown>} changed
   */
  willUpdate(changed) {
    if (this.#root && !changed.has("schema") && !changed.has("value")) return;
    const asked = JSON.stringify([this.schema, this.value === undefined, this.value]);
    if (this.#root && asked === this.#asked) return;
    this.#asked = asked;
    this.#submitted = false;
    const schema = this.schema ?? {};
    this.#root = grow(schema, schema, this.value, { label: visible(schema.title) ?? this.name });
  }

  render() {
    if (!this.#root) return nothing;
    // The inputs' own change events end here: they would pass for the form's.
    return html`<fieldset
      class="form"
      role="none"
      ?disabled=${this.disabled}
      @change=${(/** @type {Event} */ event) => event.stopPropagation()}
    >
      ${field(this.#root, this)}
    </fieldset>`;
  }
}

customElements.define("timbal-form", TimbalForm);
