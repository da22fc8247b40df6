// Speaks with a timbal server: runs as streams that survive lost connections, and the inbox, live.
// It stands alone: import it from any page. `client.d.ts` has its types, docs/http.md tells more.

/** @typedef {import("./client.js").ServerEvent} ServerEvent */

/** What a server did not do, as it tells it (RFC 9457). */
export class Problem extends Error {
  /** @param {any} told */
  constructor(told) {
    super(told.detail ?? told.title ?? "The request failed");
    this.name = "Problem";
    /** @type {number} */
    this.status = told.status;
    /** @type {any[]} */
    this.receipts = told.receipts ?? [];
    /** @type {{pointer: string, message: string}[]} */
    this.errors = told.errors ?? [];
  }
}

/** The server can't be reached: nothing is known of what was asked for. */
export class Unreachable extends Error {
  constructor() {
    super("The server can't be reached");
    this.name = "Unreachable";
  }
}

const FIRST_WAIT = 500, LONGEST_WAIT = 5000;

export class Client {
  /** @param {{base?: string | URL, headers?: () => Record<string, string>}} [options] */
  constructor({ base = new URL(".", import.meta.url), headers } = {}) {
    this.base = String(base);
    this.headers = headers;
  }

  /**
   * Start a run and read what it tells, through lost connections, to its end.
   * @param {Record<string, unknown>} input
   * @param {import("./client.js").StartOptions} [options]
   */
  async *start(input, { runnable = "", parentId, resume, labels, signal, onConnection = () => {} } = {}) {
    const body = JSON.stringify({ ...input, parent_id: parentId, resume, labels });
    const key = randomKey();
    const response = await this.#insist((again) => {
      onConnection(!again);
      const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
      return this.#fetch(`${runnable}${runnable && "/"}stream`, { method: "POST", body, headers, signal });
    }, signal);
    onConnection(true);
    yield* this.#follow(response, response.headers.get("X-Run-Id") ?? "", 0, { signal, onConnection });
  }

  /**
   * Read what a run tells, from an event on, through lost connections, to its end.
   * @param {string} runId
   * @param {import("./client.js").ReadOptions & {after?: number}} [options]
   */
  async *events(runId, { after = 0, ...options } = {}) {
    yield* this.#follow(null, runId, after, options);
  }

  /**
   * @param {Response | null} response
   * @param {string} runId
   * @param {number} after
   * @param {import("./client.js").ReadOptions} options
   * @returns {AsyncGenerator<ServerEvent>}
   */
  async *#follow(response, runId, after, { signal, onConnection = () => {} }) {
    for (let wait = FIRST_WAIT; ; ) {
      try {
        response ??= await this.#fetch(`runs/${runId}/events?after=${after}`, { signal, accept: "text/event-stream" });
        onConnection(true);
        for await (const { id, name, data } of frames(response)) {
          wait = FIRST_WAIT;
          if (id) after = Number(id);
          if (name === "end") return;
          if (name === "error") throw new Problem(data);
          if (name === "expired") return yield { type: "expired", run_id: runId, first: data.first ?? null };
          if (name === "continued") {
            [runId, after] = [data.run_id, 0];
            yield { type: "continued", run_id: runId };
            break;
          }
          yield { ...data, seq: after };
        }
      } catch (error) {
        if (signal?.aborted || !passes(error)) throw error;
        onConnection(false);
        await pause(wait, signal);
        wait = Math.min(wait * 2, LONGEST_WAIT);
      }
      response = null;
    }
  }

  /** The last event of a run that was started with this input. @param {Record<string, unknown>} body @param {string} [runnable] */
  run(body, runnable = "") {
    return this.#json(`${runnable}${runnable && "/"}run`, { method: "POST", body });
  }

  /** @param {Record<string, string | number | undefined>} [filter] @returns {Promise<import("./client.js").Page<any>>} */
  runs(filter) {
    return this.#json(`runs${query(filter)}`);
  }

  /** @param {string} runId */
  getRun(runId) {
    return this.#json(`runs/${runId}`);
  }

  /** @param {string} runId @param {string} [reason] */
  cancel(runId, reason) {
    return this.#json(`cancel/${runId}`, { method: "POST", body: reason ? { reason } : {} });
  }

  /** @param {Record<string, string | number | undefined>} [filter] @returns {Promise<import("./client.js").Page<any>>} */
  pending(filter) {
    return this.#json(`pending${query(filter)}`);
  }

  /** One item with its record. @param {string} runId @param {string} id */
  item(runId, id) {
    return this.#json(`pending/${runId}/${encodeURIComponent(id)}`);
  }

  /**
   * Answer an item; its run goes on in the background. The same answer twice is one answer.
   * @param {string} runId @param {string} id @param {unknown} value
   */
  answer(runId, id, value) {
    return this.#json(`pending/${runId}/${encodeURIComponent(id)}`, { method: "POST", body: { value } });
  }

  /** @param {string} [runnable] */
  paramsSchema(runnable = "") {
    return this.#json(`${runnable}${runnable && "/"}params_model_schema`);
  }

  /**
   * Be told what waits for a person, and of each change, until the returned function is called.
   * @param {import("./client.js").InboxListener} listener
   * @param {Record<string, string | undefined>} [filter]
   * @returns {() => void}
   */
  watch(listener, filter) {
    const end = new AbortController();
    void this.#watch(listener, filter, end.signal);
    return () => end.abort();
  }

  /** @param {import("./client.js").InboxListener} listener @param {Record<string, string | undefined> | undefined} filter @param {AbortSignal} signal */
  async #watch(listener, filter, signal) {
    for (let wait = FIRST_WAIT; !signal.aborted; ) {
      try {
        const response = await this.#fetch(`pending/stream${query(filter)}`, { signal, accept: "text/event-stream" });
        /** @type {any[]} */
        let items = [];
        for await (const { name, data } of frames(response)) {
          if (name === "error") throw new Problem(data);
          if (name === "opened") listener.opened?.(data);
          if (name === "settled") listener.settled?.(data);
          if (name !== "snapshot") continue;
          items.push(...data.items);
          if (!data.complete) continue;
          wait = FIRST_WAIT;
          listener.connection?.(true);
          listener.snapshot?.(items);
          items = [];
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!passes(error)) return listener.refused?.(error);
        listener.connection?.(false);
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  /** Try until the server can be reached. @param {(again: boolean) => Promise<Response>} ask @param {AbortSignal} [signal] */
  async #insist(ask, signal) {
    for (let wait = FIRST_WAIT, again = false; ; wait = Math.min(wait * 2, LONGEST_WAIT), again = true) {
      try {
        return await ask(again);
      } catch (error) {
        if (signal?.aborted || !passes(error)) throw error;
      }
      await pause(wait, signal);
    }
  }

  /** @param {string} path @param {{method?: string, body?: unknown}} [options] */
  async #json(path, { method, body } = {}) {
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const response = await this.#fetch(path, { method, ...sent, accept: "application/json" });
    if (response.status === 204) return null;
    return response.json().catch(() => {
      throw new Unreachable(); // the connection was lost in the middle
    });
  }

  /** @param {string} path @param {RequestInit & {accept?: string}} options @returns {Promise<Response>} */
  async #fetch(path, { accept, headers, ...options }) {
    const given = { ...(accept ? { Accept: accept } : {}), ...headers, ...this.headers?.() };
    const response = await fetch(new URL(path, this.base), { ...options, headers: given, cache: "no-store" }).catch((error) => {
      throw options.signal?.aborted ? error : new Unreachable();
    });
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    throw new Problem({ title: response.statusText, ...told, status: response.status });
  }
}

/** Whether it may be otherwise in a moment. @param {unknown} error */
function passes(error) {
  return error instanceof Unreachable || error instanceof TypeError || (error instanceof Problem && [502, 503, 504].includes(error.status));
}

/** Server-sent events out of a response. @param {Response} response */
async function* frames(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let text = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (text += value).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        /** @type {Record<string, string>} */
        const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s, 2)));
        if (fields.data) yield { id: fields.id, name: fields.event, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {Record<string, string | number | undefined>} [filter] */
function query(filter = {}) {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

/** Wait so long, or until it is called off. @param {number} milliseconds @param {AbortSignal} [signal] @returns {Promise<void>} */
function pause(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

// `crypto.randomUUID` is there in secure contexts only.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
