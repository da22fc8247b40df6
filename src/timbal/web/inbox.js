import { html, LitElement } from "./vendor/lit.js";

class TimbalInbox extends LitElement {
  createRenderRoot() {
    return this;
  }

  render() {
    return html`<h1>Inbox</h1>`;
  }
}

customElements.define("timbal-inbox", TimbalInbox);
