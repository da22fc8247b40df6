import { html, LitElement } from "./vendor/lit.js";

class TimbalRuns extends LitElement {
  createRenderRoot() {
    return this;
  }

  render() {
    return html`<h1>Runs</h1>`;
  }
}

customElements.define("timbal-runs", TimbalRuns);
