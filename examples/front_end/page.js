// A front end on nothing but /client.js: timbal serve app.py::agent --static examples/front_end, then open /static/index.html
import { Client } from "../client.js";

const client = new Client();
const [form, told, asked, stop, waiting] = ["start", "told", "asked", "stop", "waiting"].map((id) => document.getElementById(id));
let runId;

// Everything that a run tells, through lost connections, to its end.
async function follow(events) {
  stop.hidden = false;
  try {
    for await (const event of events) {
      runId = event.run_id;
      if (event.type === "DELTA") told.append(event.item.text_delta ?? "");
      if (event.type === "INTERACTION") ask(event.interaction_id, event.payload.question ?? event.payload.action, event.payload.options?.map((one) => [one, one]));
      if (event.type === "APPROVAL") ask(event.approval_id, event.prompt ?? `${event.runnable_name} ${JSON.stringify(event.input)}?`);
    }
  } catch (error) {
    told.append(error.message);
  }
  stop.hidden = true;
  told.append("\n");
}

function ask(id, question, choices = [["yes", true], ["no", false]]) {
  asked.replaceChildren(`${question} `, ...choices.map(([label, value]) => {
    const button = Object.assign(document.createElement("button"), { textContent: label });
    button.onclick = () => (asked.replaceChildren(), follow(answered(id, value)));
    return button;
  }));
}

// The same answer may be sent again. That somebody else was faster is told as a problem.
async function* answered(id, value) {
  const { next_run_id } = await client.answer(runId, id, value);
  yield* client.events(next_run_id);
}

form.onsubmit = (event) => {
  event.preventDefault();
  follow(client.start({ prompt: form.prompt.value }));
};
stop.onclick = () => client.cancel(runId, "stopped in the browser");
// How much waits for a person, in any run, as it changes.
const open = new Set(), count = () => (waiting.textContent = `${open.size} waiting`);
client.watch({
  snapshot: (items) => (open.clear(), items.forEach((item) => open.add(item.id)), count()),
  opened: (item) => (open.add(item.id), count()),
  settled: (item) => (open.delete(item.id), count()),
});
