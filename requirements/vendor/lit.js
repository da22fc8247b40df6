export { LitElement, html, nothing, noChange, render } from "lit";
export { repeat } from "lit/directives/repeat.js";
export { live } from "lit/directives/live.js";
export { ref, createRef } from "lit/directives/ref.js";
export { classMap } from "lit/directives/class-map.js";
