import { html, LitElement } from "./vendor/lit.js";

class TimbalChat extends LitElement {
  createRenderRoot() {
    return this;
  }

  render() {
    return html`<h1>Chat</h1>`;
  }
}

customElements.define("timbal-chat", TimbalChat);
