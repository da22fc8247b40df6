export { html, nothing, render } from "lit/html.js";
export { repeat } from "lit/directives/repeat.js";
