// Shows questions of the kind pick_location as a map with places.

import { registerRenderer } from "../web/renderers.js";

class PickLocation extends HTMLElement {
  #disabled = false;

  connectedCallback() {
    const { question, places } = this.item.event.payload;
    const heading = document.createElement("h2");
    heading.textContent = question;
    const map = document.createElement("div");
    map.className = "map";
    map.append(...places.map((place, n) => this.#pin(place, n + 1)));
    this.replaceChildren(heading, map);
  }

  /** Nothing can be answered: it is settled, or for others. */
  set disabled(disabled) {
    this.#disabled = disabled;
    for (const pin of this.querySelectorAll("button")) pin.disabled = disabled;
  }

  #pin({ name, x, y }, key) {
    const pin = document.createElement("button");
    pin.textContent = name;
    pin.disabled = this.#disabled;
    pin.dataset.key = key; // this key picks it
    pin.style.left = `${x}%`;
    pin.style.top = `${y}%`;
    pin.onclick = () => this.dispatchEvent(new CustomEvent("answer", { detail: { value: name } }));
    return pin;
  }
}

customElements.define("pick-location", PickLocation);
registerRenderer("pick_location", "pick-location");
