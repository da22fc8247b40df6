// What waits for a person, as the server tells it: one connection for all tabs where the browser has shared workers.

/** @typedef {import("./client.js").PendingItem} PendingItem */
/** @typedef {import("./client.js").Settled} Settled */

/** @param {{run_id: string, id: string}} item */
export const keyOf = ({ run_id, id }) => `${run_id}/${id}`;

/**
 * Tells of changes by events: `snapshot` (all of it may have changed), `opened` and `settled` (`detail` is the item, or
 * what became of it), `connection`.
 */
export class Inbox extends EventTarget {
  /** @type {Map<string, PendingItem>} What waits, oldest first. */
  items = new Map();
  /** @type {Map<string, Settled>} What was settled since the page was opened. */
  settled = new Map();
  /** Whether all that waits is known. */
  ready = false;
  connected = true;
  /** @type {unknown} Why the server tells nothing. */
  problem = null;

  /** @param {import("./client.js").Client} client */
  constructor(client) {
    super();
    /** @type {import("./client.js").InboxListener} */
    const listener = {
      snapshot: (items) => {
        this.items = new Map(items.map((item) => [keyOf(item), item]));
        this.ready = true;
        this.#tell("snapshot");
      },
      opened: (item) => {
        this.items.set(keyOf(item), item);
        this.settled.delete(keyOf(item));
        this.#tell("opened", item);
      },
      settled: (news) => {
        this.items.delete(keyOf(news));
        this.settled.set(keyOf(news), news);
        this.#tell("settled", news);
      },
      connection: (connected) => {
        if (connected) this.problem = null;
        this.connected = connected;
        this.#tell("connection");
      },
      refused: (problem) => {
        this.problem = problem;
        this.#tell("connection");
      },
    };
    if (!listenShared(listener)) client.watch(listener);
  }

  /** @param {string} type @param {unknown} [detail] */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/**
 * Browsers open six connections to a host, and each tab's own stream would hold one of them for good.
 * @param {any} listener
 */
function listenShared(listener) {
  if (!("SharedWorker" in globalThis)) return false;
  const { port } = new SharedWorker(new URL("inbox-worker.js", import.meta.url), { type: "module", name: "timbal inbox" });
  port.onmessage = ({ data: [name, detail] }) => listener[name](detail);
  addEventListener("pagehide", () => port.postMessage("leave"));
  addEventListener("pageshow", (event) => event.persisted && port.postMessage("join"));
  port.postMessage("join");
  return true;
}
