// Receives state, progress and pictures from the server through a WebSocket, which connects again
// by itself; and sends the server what the user changes during a run.
import { debounced } from "./dom.js";
import { active, changed, fail, forgive, get, onChange, post, prepare, reached } from "./store.js";
import { settings, show, state, subject } from "./store.js";

const AGAIN = 1500; // milliseconds until the next attempt to connect

let runsSeen = null;
let newest = null; // the newest socket
export const preview = { id: null, blob: null }; // the latest live picture

/** Send all edits that the painter has not used yet, in one request; send no other settings. */
const send = debounced(async () => {
  const { id, status, edits } = state.running ?? {};
  if (!active() || status === "stopping" || !Object.keys(edits).length) return null;
  const asked = post(`/api/queue/${id}/steer`, { settings: edits });
  const answer = await asked.catch((refusal) => ({ refusal, number: 0 }));
  if (state.running?.edits !== edits) return null; // there are new edits, which the next call sends
  if (answer.refusal?.isLost) return setTimeout(send, AGAIN);
  state.running.awaited = answer.number;
  settle();
  return answer.refusal && fail(answer.refusal);
}, 150);

/** Drop the edits that the painter has used or refused. */
function settle() {
  const { running } = state;
  if (running && running.done >= running.awaited) Object.assign(running, { edits: {}, awaited: 0 });
  changed();
}

/** Update the run at work, or the last one, with what the server has sent. */
function follow(run) {
  const [before, shown] = [state.running, subject()];
  const isSame = before?.id === run?.id;
  const begins = active(run) && !(isSame && active(before));
  const { edits, awaited } = isSame && !begins && before ? before : { edits: {}, awaited: 0 };
  state.running = run && { ...run, edits, awaited };
  if (begins) begin(before, shown);
  else if (shown === before && active(before) && !active(run) && Object.keys(before.edits).length) {
    prepare(settings(before)); // the run has ended before it used the last edits
    state.aim = "next";
  }
  settle();
}

/** Show a run that begins, and its settings, unless the user prepares the next run. */
function begin(before, shown) {
  const { running } = state;
  const follows = state.asked || shown || !active(before);
  const target = follows ? "this" : "next";
  const isOpening = !before && !state.asked; // then the address may name a result
  if (!isOpening) show(running.id, { target });
  else if (!location.hash) show(running.id, { how: "replaceState" });
  state.asked = false;
}

async function takeState({ current, queue, runs_changed }) {
  state.queue = queue;
  follow(current);
  if (runsSeen === runs_changed) return;
  runsSeen = runs_changed;
  await refreshRuns();
}

export async function refreshRuns() {
  state.runs = await get("/api/runs").catch(() => state.runs); // the socket tells why it failed
  changed();
}

function take({ data }) {
  if (data instanceof Blob) Object.assign(preview, { id: state.running?.id, blob: data });
  if (data instanceof Blob) return changed();
  const { type, ...message } = JSON.parse(data);
  if (type === "state") return takeState(message);
  if (type === "message") return fail({ message: message.error, key: message.key });
  if (state.running?.id === message.id) Object.assign(state.running, message);
  return changed();
}

export function connect() {
  const socket = new WebSocket(`ws://${location.host}/live`);
  newest = socket;
  socket.addEventListener("open", () => {
    runsSeen = null;
    reached();
  });
  socket.addEventListener("message", take);
  socket.addEventListener("close", async () => {
    setTimeout(connect, AGAIN);
    const why = await get("/api/pictures").then(() => null, (refusal) => refusal.message);
    if (!why || socket !== newest) return;
    state.lost = why; // it is shown above the page
    forgive(({ error }) => error !== why);
  });
}

onChange(send);
addEventListener("online", reached);
