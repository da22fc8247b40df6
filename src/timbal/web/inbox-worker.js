// One connection to the inbox for all tabs: what it tells is handed on to each.

import { Client } from "./client.js";
import { keyOf } from "./inbox-state.js";

/** @type {Set<MessagePort>} */
const ports = new Set();
/** @type {Map<string, any>} */
const items = new Map();
const client = new Client({ base: new URL("..", import.meta.url) });
let [ready, connected, watching] = [false, true, false];

/** @param {string} name @param {unknown} detail */
function tell(name, detail) {
  for (const port of ports) port.postMessage([name, detail]);
}

function watch() {
  watching = true;
  client.watch({
    snapshot(all) {
      items.clear();
      for (const item of all) items.set(keyOf(item), item);
      ready = true;
      tell("snapshot", all);
    },
    opened(item) {
      items.set(keyOf(item), item);
      tell("opened", item);
    },
    settled(news) {
      items.delete(keyOf(news));
      tell("settled", news);
    },
    connection(now) {
      connected = now;
      tell("connection", now);
    },
    refused(problem) {
      watching = ready = false;
      tell("refused", problem instanceof Error ? problem.message : String(problem));
    },
  });
}

/** @param {MessagePort} port */
function join(port) {
  ports.add(port);
  if (!watching) watch();
  if (!connected) port.postMessage(["connection", false]);
  if (ready) port.postMessage(["snapshot", [...items.values()]]);
}

addEventListener("connect", (event) => {
  const port = /** @type {MessagePort} */ (/** @type {MessageEvent} */ (event).ports[0]);
  port.onmessage = ({ data }) => (data === "join" ? join(port) : ports.delete(port));
});
