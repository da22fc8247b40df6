/** `<timbal-form>`: a form for any JSON Schema that pydantic makes. */
import { LitElement, html } from "./vendor/lit.js";

export class TimbalForm extends LitElement {
  createRenderRoot() {
    return this;
  }

  render() {
    return html``;
  }
}

customElements.define("timbal-form", TimbalForm);
