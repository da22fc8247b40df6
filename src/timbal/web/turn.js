// One turn of a conversation as it is seen: what was said, what was called, and the questions where they were asked.

import { inbox, may } from "./context.js";
import { brief, data, fields, isNested, LOADING, same, seen, text, whole } from "./data.js";
import { parse } from "./markdown.js";
import { Part } from "./part.js";
import { lineOf } from "./record.js";
import { lasting, took } from "./time.js";
import { html, nothing } from "./vendor/lit.js";

/** @typedef {import("./transcript.js").Call} Call */
/** @typedef {import("./transcript.js").Turn} Turn */

/** @param {import("./markdown.js").Node[]} nodes @returns {unknown} */
const shown = (nodes) => nodes.map(element);

/** @param {import("./markdown.js").Node} node */
function element(node) {
  if (typeof node === "string") return seen(node);
  const kids = shown(node.kids);
  switch (node.tag) {
    case "p": return html`<p>${kids}</p>`;
    case "pre": return html`<pre tabindex="0"><code>${kids}</code></pre>`;
    case "code": return html`<code>${kids}</code>`;
    case "strong": return html`<strong>${kids}</strong>`;
    case "em": return html`<em>${kids}</em>`;
    case "ul": return html`<ul>${kids}</ul>`;
    case "ol": return html`<ol start=${node.start ?? 1}>${kids}</ol>`;
    case "li": return html`<li>${kids}</li>`;
    case "blockquote": return html`<blockquote>${kids}</blockquote>`;
    case "hr": return html`<hr />`;
    case "table": return html`<div class="wide" tabindex="0" role="region" aria-label="Table"><table>${kids}</table></div>`;
    case "tr": return html`<tr>${kids}</tr>`;
    case "th": return html`<th>${kids}</th>`;
    case "td": return html`<td>${kids}</td>`;
    case "a": {
      const { href = "" } = node;
      const address = node.kids[0] === href ? nothing : html` <span class="muted">(${seen(href)})</span>`;
      return html`<a href=${href} target="_blank" rel="noopener noreferrer">${kids}</a>${address}`;
    }
    default: return html`<p class="heading" role="heading" aria-level=${Math.min(Number(node.tag[1]) + 2, 6)}>${kids}</p>`;
  }
}

/** What the person gave, in words. @param {any} input @returns {string} */
export function promptOf(input) {
  const message = input?.prompt ?? input?.messages?.at(-1) ?? "";
  const content = message.content ?? message;
  if (typeof content === "string") return content;
  return content.map((/** @type {any} */ part) => part.text ?? (part.type === "file" ? `[${part.name ?? part.media_type}]` : "")).join("\n");
}

/** A call and what is within; it is rendered again only when something of it has changed. */
class TimbalCall extends Part {
  static properties = ["call", "questions", "run"];

  constructor() {
    super();
    this.call = /** @type {Call} */ (/** @type {any} */ (null));
    /** @type {Turn["questions"]} */
    this.questions = new Map();
    this.run = "";
  }

  render() {
    return this.call.kind === "model" ? this.#reply() : this.#tool();
  }

  /** What a model says. */
  #reply() {
    const { parts, state } = this.call;
    const last = parts.at(-1);
    const doing = last?.type === "tool_use" ? html`Getting ready: ${text(last.name)}` : !last ? "Thinking" : null;
    return html`${parts.map((part) => {
      if (part.type === "text") return part.text ? html`<div class="words">${shown(parse(part.text))}</div>` : nothing;
      return part.type === "thinking" ? html`<details class="thinking"><summary>Thinking</summary><div>${text(part.text)}</div></details>` : nothing;
    })}${state === "running" && doing ? html`<p class="muted doing">${doing} ...</p>` : nothing}`;
  }

  #tool() {
    const { call } = this;
    const { name, input, parts, state } = call;
    const nested = parts.some((part) => part.type === "call");
    const asked = parts.some((part) => part.type === "question");
    const active = state === "running" || state === "waiting";
    const news = parts.findLast((part) => part.type === "text" || part.type === "custom");
    return html`<details class="call ${state}" ?open=${nested && active}>
        <summary><span class="name">${text(name)}</span> <span class="brief">${asked ? "" : seen(brief(input))}</span> <span class="state">${this.#state()}</span></summary>
        <div class="inside">
          ${same(input ?? {}, {}) ? nothing : html`<h4>Given</h4>${fields(input)}`}
          ${this.#parts(false)}
          ${call.error ? html`<h4>What went wrong</h4><p class="bad">${text(call.error)}</p>` : state === "done" && !nested ? html`<h4>Result</h4>${whole(call.output)}` : nothing}
        </div>
      </details>
      ${state === "running" && news ? html`<p class="muted doing">${progress(news)}</p>` : nothing}
      ${this.#parts(true)}`;
  }

  /** @param {boolean} asked The questions, which are never folded away; or all else. */
  #parts(asked) {
    return partsOf(this.call.parts.filter((part) => (part.type === "question") === asked), this);
  }

  #state() {
    const { call, questions } = this;
    const asked = call.parts.filter((part) => part.type === "question").map((part) => questions.get(part.id));
    const open = asked.some((question) => question && !question.settled);
    switch (call.state) {
      case "running": return html`running ${lasting(call.since)}`;
      case "waiting": return open ? "waits for an answer" : asked.length ? "answered" : "waits";
      case "done": return html`done <span class="muted">${took(call.took ?? 0)}</span>`;
      case "stopped": return "not finished";
      default: return call.state;
    }
  }
}

/** @param {import("./transcript.js").Part[]} parts @param {{questions: Turn["questions"], run: string}} within @returns {unknown[]} */
function partsOf(parts, { questions, run }) {
  return parts.map((part) => {
    switch (part.type) {
      case "call": return html`<timbal-call class=${part.call.kind === "model" ? "reply" : "step"} .call=${part.call} .questions=${questions} .run=${run}></timbal-call>`;
      case "question": return html`<div class="asked" tabindex="-1" data-item=${part.id}>${card(questions.get(part.id), run)}</div>`;
      case "text":
      case "custom": return html`<p class="progress">${progress(part)}</p>`;
      default: return nothing;
    }
  });
}

/** @param {import("./transcript.js").Part} part */
function progress(part) {
  const value = part.text ?? part.data;
  const only = value && typeof value === "object" && Object.keys(value).length === 1 ? Object.values(value)[0] : value;
  return isNested(only) ? data(only) : text(String(only));
}

/** @type {WeakMap<import("./transcript.js").Question, any>} The same object for the same question: a card keeps what was typed. */
const items = new WeakMap();

/** @param {import("./transcript.js").Question | undefined} question @param {string} run */
function card(question, run) {
  if (!question?.event) return nothing;
  const { id, event, settled } = question;
  if (!may("answer") && !settled) return html`<p class="notice">Waits for somebody who may answer: ${text(lineOf(event))}</p>`;
  if (!items.has(question)) {
    const made = { id, run_id: run, kind: event.kind, runnable: event.runnable_name, labels: {}, asked_at: event.t0, expires_at: event.expires_at, event };
    items.set(question, settled ? { ...made, state: settled.state, settled } : (inbox.items.get(`${run}/${id}`) ?? made));
  }
  return html`<timbal-card .item=${items.get(question)}></timbal-card>`;
}

/** @param {Turn} turn */
export function turnOf(turn) {
  const { root, status, questions, run } = turn;
  if (!root) return LOADING;
  const agent = root.kind === "Agent";
  const result = root.state === "done" && !(agent && root.output?.role);
  return html`<article class="turn" aria-label="Turn">
    <div class="mine"><h2 class="unseen">You</h2>${agent ? html`<bdi class="text">${seen(promptOf(root.input))}</bdi>` : html`<p><b>${text(root.name)}</b></p>${same(root.input ?? {}, {}) ? nothing : fields(root.input)}`}</div>
    <div class="theirs"><h2 class="unseen">${root.name}</h2>
      ${partsOf(root.parts, { questions, run })}
      ${result && root.output !== null ? html`<section class="result" aria-label="Result"><h3>Result</h3>${whole(root.output)}</section>` : nothing}
      ${root.state === "running" && !root.parts.length ? html`<p class="muted doing">Working ${lasting(root.since)}</p>` : nothing}
      ${status ? end(root, status) : nothing}
    </div>
  </article>`;
}

/** @param {Call} root @param {any} status */
function end(root, status) {
  switch (root.state) {
    case "failed": return html`<p class="ended bad">It failed: ${text(root.error ?? status.reason ?? "nobody knows why")}</p>`;
    case "denied": return html`<p class="ended">Not done: it was denied.</p>`;
    case "cancelled": return html`<p class="ended muted">${/superseded/.test(status.message) ? "Left here: a new message came instead of an answer." : html`Stopped.${status.message ? html` ${text(status.message)}` : nothing}`}</p>`;
    case "stopped": return html`<p class="ended muted">Interrupted. It goes on when a server takes it up again.</p>`;
    default: return nothing;
  }
}

customElements.define("timbal-call", TimbalCall);
