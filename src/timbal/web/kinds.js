// How the page asks: an element for each sort of question. They keep the same rules as yours.

import { changes, fields, same, seen, text, whole } from "./data.js";
import { Part } from "./part.js";
import { questionOf } from "./record.js";
import { html, nothing } from "./vendor/lit.js";

const REDACTED = "[redacted]";
const FIELDS = "timbal-form :is(input, textarea, select)";

class Asking extends Part {
  static properties = ["item", "draft", "disabled", "sending", "errors", "problem"];

  constructor() {
    super();
    this.item = this.draft = /** @type {any} */ (undefined);
    this.disabled = this.sending = false;
    /** @type {{pointer: string, message: string}[]} */
    this.errors = [];
    this.problem = "";
  }

  get schema() {
    return this.item.event.response_schema;
  }

  get payload() {
    return this.item.event.payload ?? this.item.event.input;
  }

  /** @param {unknown} value */
  answer(value) {
    this.dispatchEvent(new CustomEvent("answer", { detail: { value } }));
  }

  /** @param {unknown} value */
  keep(value) {
    this.draft = value;
    this.problem = "";
    this.dispatchEvent(new CustomEvent("draft", { detail: { value } }));
  }

  /** @param {string} problem */
  refuse(problem) {
    this.problem = problem;
    this.focusOn("input, textarea");
  }

  /** @param {string} otherwise What is asked where there are no words. */
  words(otherwise) {
    const words = questionOf(this.payload)[1];
    return words ? text(words) : otherwise;
  }

  /** What there is to know besides. @param {string} [shown] What is shown elsewhere. */
  rest(shown) {
    const { payload } = this;
    const rest = Object.entries(payload).filter(([name, value]) => value !== null && name !== shown && name !== questionOf(payload)[0]);
    return rest.length ? fields(Object.fromEntries(rest)) : nothing;
  }

  /** What is wrong, where no field of a form says so. */
  told() {
    const told = this.problem || (this.find("timbal-form") ? "" : this.errors.map((error) => error.message).join("; "));
    return told ? html`<p class="error" role="alert">${seen(told)}</p>` : nothing;
  }

  /** @param {unknown} content @param {() => void} submit @param {string} words @param {unknown} [more] @param {string} [style] */
  form(content, submit, words, more = nothing, style = "primary") {
    return html`<form novalidate @submit=${(/** @type {Event} */ event) => (event.preventDefault(), submit())}>
      ${content}${this.told()}
      ${this.disabled ? nothing : html`<div class="actions"><button class=${style} aria-disabled=${this.sending}>${this.sending ? "Sending …" : words}</button>${more}</div>`}
    </form>`;
  }

  /** @param {string} words @param {string} key @param {() => void} click @param {string} [style] */
  button(words, key, click, style = "") {
    return html`<button type="button" class=${style} data-key=${key} aria-disabled=${this.sending} @click=${click}>${words} <kbd aria-hidden="true">${key}</kbd></button>`;
  }

  /** @param {string} label @param {string} value @param {(value: string) => void} typed @param {string} [style] */
  area(label, value, typed, style = "") {
    return html`<label>${label}<textarea class=${style} dir="auto" ?disabled=${this.disabled} .value=${value} @input=${(/** @type {any} */ event) => typed(event.target.value)}></textarea></label>`;
  }
}

/** One of some options or a text, or several options. */
class TimbalAsk extends Asking {
  render() {
    const schema = this.schema ?? {}, given = this.payload.options;
    const several = schema.type === "array" || this.item.kind === "ask_user_multi";
    /** @type {unknown[]} */
    const options = schema.enum ?? schema.items?.enum ?? (Array.isArray(given) ? given : []);
    const { minItems: least = 0, maxItems: most = Infinity } = schema;
    const hint = most < Infinity ? `Choose ${least === most ? "" : `${least} to `}${most}.` : least ? `Choose at least ${least}.` : "Choose as many as you like.";
    /** @type {unknown[]} */
    const picked = options.filter((one) => (several ? (this.draft ?? []) : [this.draft]).some((/** @type {unknown} */ other) => same(one, other)));
    const other = !several && !picked.length && this.draft !== undefined;
    const pick = (/** @type {unknown} */ one) => this.keep(several ? options.filter((other) => (other === one) !== picked.includes(other)) : one);
    const option = (/** @type {unknown} */ words, /** @type {number} */ n, /** @type {boolean} */ checked, /** @type {() => void} */ change) => html`
      <label class="option"><input type=${several ? "checkbox" : "radio"} name="pick" data-key=${n + 1} ?disabled=${this.disabled} .checked=${checked} @change=${change} />
        <span>${words}</span>${n < 9 ? html`<kbd aria-hidden="true">${n + 1}</kbd>` : nothing}</label>`;
    const words = this.disabled ? nothing : this.area("Your answer", String(this.draft ?? ""), (value) => this.keep(value));
    const all = html`<fieldset>
      <legend class="question">${this.words("What is your answer?")}</legend>${this.rest("options")}
      ${several ? html`<p class="hint">${hint}</p>` : nothing}
      ${options.map((one, n) => option(text(one), n, picked.includes(one), () => pick(one)))}
      ${several || schema.enum || !options.length ? nothing : option("Other …", options.length, other, () => (this.keep(""), this.focusOn("textarea")))}
      ${other || !options.length ? words : nothing}
    </fieldset>`;
    const submit = () => {
      if (several && (picked.length < least || picked.length > most)) this.refuse(hint);
      else if (!several && (this.draft ?? "") === "") this.refuse(options.length && !other ? "Choose one of these." : "Write an answer first.");
      else this.answer(several ? picked : this.draft);
    };
    return this.form(all, submit, "Send answer");
  }
}

/** Yes or no. */
class TimbalConfirm extends Asking {
  render() {
    return html`<fieldset><legend class="question">${this.words("Yes or no?")}</legend>${this.rest()}${this.told()}
      ${this.disabled ? nothing : html`<div class="actions">${this.button("Yes, do it", "a", () => this.answer(true), "primary")}${this.button("No, don't", "r", () => this.answer(false))}</div>`}</fieldset>`;
  }
}

/** What a schema describes. */
class TimbalAskForm extends Asking {
  /** @type {{schema: any, value: any} | undefined} What the form was given, which it changes itself from then on. */
  shown;

  get fields() {
    return this.find("timbal-form");
  }

  /** Fails when the form does, too. */
  get updateComplete() {
    return super.updateComplete.then(() => this.fields?.updateComplete);
  }

  render() {
    this.shown ??= { schema: this.schema, value: this.draft };
    const content = html`<h2 class="question">${this.words("Please fill this in")}</h2>${this.rest()}${this.filling((value) => this.keep(value))}`;
    return this.form(content, () => this.submit((value) => this.answer(value)), "Send answer");
  }

  /** @param {(value: any) => void} changed */
  filling(changed) {
    const { schema, value } = /** @type {{schema: any, value: any}} */ (this.shown);
    return html`<timbal-form .schema=${schema} .value=${value} .disabled=${this.disabled} @change=${(/** @type {CustomEvent} */ { detail }) => changed(detail.value)}></timbal-form>`;
  }

  /** @param {(value: any) => void} take */
  submit(take) {
    const { value, errors } = this.fields.read();
    if (!errors) take(value);
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  updated(changed) {
    if (changed.has("errors") && this.errors.length) this.fields.refuse(this.errors);
  }
}

/** Anything, as JSON. */
class TimbalAskJson extends Asking {
  render() {
    const written = String(this.draft ?? "").trim();
    /** @type {any} */
    let value, problem = "Write an answer first.";
    try {
      value = JSON.parse(written);
      problem = "";
    } catch (error) {
      if (written) problem = `This is no JSON yet: ${/** @type {Error} */ (error).message}`;
    }
    const content = html`<h2 class="question">${this.words("What is your answer?")}</h2>
      <div class="beside"><div>${this.rest()}</div><div>
        ${this.area("Answer, as JSON", String(this.draft ?? ""), (typed) => this.keep(typed), "code")}
        <p class="error" role="alert">${written ? problem : nothing}</p>
        <p class="hint">A text stands in quotes: "like this". Also: 12, true, null, ["a", "list"], {"name": "value"}.</p>
      </div></div>`;
    return this.form(content, () => (problem ? this.refuse(written ? "" : problem) : this.answer(value)), "Send answer");
  }
}

/** A call that waits to be allowed. Its draft: `{mode, edit, reason, always}`. */
class TimbalApproval extends TimbalAskForm {
  get state() {
    return this.draft ?? {};
  }

  /** @param {object} change @param {string} [focus] */
  set(change, focus) {
    this.keep({ ...this.state, ...change });
    if (focus) this.focusOn(focus);
  }

  render() {
    const { event } = this.item, { prompt, description, runnable_name: name, input, preview, ui } = event;
    const { reopened } = event.metadata.approval ?? {};
    const mode = this.disabled ? "" : this.state.mode;
    return html`<h2 class="question">${prompt ? text(prompt) : html`May ${text(name)} run?`}</h2>
      ${description ? html`<p>${text(description)}</p>` : nothing}
      ${reopened ? html`<div class="notice">This was decided before, but what would run has changed since: ${fields(reopened)}</div>` : nothing}
      ${mode === "edit" ? nothing : html`<h3>What will run: <code>${text(name)}</code></h3>${whole(input)}`}
      ${preview == null ? nothing : html`<h3>What would happen</h3>${whole(preview)}`}
      ${ui ? html`<h3>Details</h3>${fields(ui)}` : nothing}
      ${this.disabled ? nothing : mode === "edit" ? this.editing() : mode === "review" ? this.review() : mode === "deny" ? this.denying() : this.deciding(name)}`;
  }

  /** @param {string} name */
  deciding(name) {
    const always = html`<label class="option"><input type="checkbox" .checked=${!!this.state.always} @change=${(/** @type {any} */ event) => this.set({ always: event.target.checked })} />
      <span>When I approve: don't ask again for ${text(name)} in this conversation</span></label>`;
    return html`${this.item.event.metadata.approval?.grantable ? always : nothing}${this.told()}
      <div class="actions">
        ${this.button(this.sending ? "Sending …" : "Approve", "a", () => this.approve({}), "primary")}
        ${Object.keys(this.editable().value).length ? this.button("Change, then approve", "e", () => this.set({ mode: "edit" }, FIELDS)) : nothing}
        ${this.button("Deny", "r", () => this.set({ mode: "deny" }, "textarea"), "danger")}
      </div>`;
  }

  get back() {
    return html`<button type="button" @click=${() => this.set({ mode: "", edit: undefined }, "[data-key=a]")}>Back</button>`;
  }

  /** All but what is hidden, which stays as it is. */
  editable() {
    const { input, input_schema: schema } = this.item.event;
    const names = Object.keys(schema?.properties ?? {}).filter((name) => name in input && !JSON.stringify(input[name]).includes(REDACTED));
    const pick = (/** @type {any} */ all) => Object.fromEntries(names.map((name) => [name, all[name]]));
    const required = schema?.required?.filter((/** @type {string} */ name) => names.includes(name));
    return { schema: { ...schema, properties: pick(schema?.properties), required }, value: pick(input) };
  }

  editing() {
    const { schema, value } = this.editable();
    this.shown ??= { schema, value: { ...value, ...this.state.edit } };
    const content = html`<h3>Change what will run</h3>${this.filling((edit) => this.set({ edit }))}
      ${same(Object.keys(value), Object.keys(this.item.event.input)) ? nothing : html`<p class="hint">What is hidden can't be changed here, and stays as it is.</p>`}`;
    return this.form(content, () => this.submit((edit) => this.set({ mode: "review", edit }, ".primary")), "Review changes", this.back);
  }

  review() {
    const { input } = this.item.event;
    const edit = Object.fromEntries(Object.entries(this.state.edit ?? {}).filter(([name, value]) => !same(value, input[name])));
    const changed = !same(edit, {});
    const content = html`<h3>Your changes</h3>${changed ? changes(input, { ...input, ...edit }) : html`<p>Nothing is changed.</p>`}`;
    const more = html`<button type="button" @click=${() => this.set({ mode: "edit" }, FIELDS)}>Change more</button>${this.back}`;
    return this.form(content, () => this.approve(changed ? { override_input: edit } : {}), changed ? "Approve with these changes" : "Approve", more);
  }

  denying() {
    const reason = this.state.reason ?? "";
    const content = this.area("Why not? The agent reads it; you may leave it empty.", reason, (value) => this.set({ reason: value }));
    return this.form(content, () => this.answer(reason.trim() ? { approved: false, reason } : false), "Deny", this.back, "danger");
  }

  /** @param {object} more */
  approve(more) {
    const decision = { approved: true, ...more, ...(this.state.always && { scope: "conversation" }) };
    this.answer(same(decision, { approved: true }) || decision);
  }

  /** @param {Map<PropertyKey, unknown>} changed */
  async updated(changed) {
    if (this.state.mode !== "edit") this.shown = undefined;
    if (!changed.has("errors") || !this.errors.length || this.state.mode !== "review") return;
    const errors = this.errors.map(({ pointer, message }) => ({ pointer: pointer.replace("/override_input", ""), message }));
    this.set({ mode: "edit" });
    await this.updateComplete;
    this.fields.refuse(errors);
  }
}

customElements.define("timbal-ask", TimbalAsk);
customElements.define("timbal-confirm", TimbalConfirm);
customElements.define("timbal-ask-form", TimbalAskForm);
customElements.define("timbal-ask-json", TimbalAskJson);
customElements.define("timbal-approval", TimbalApproval);
