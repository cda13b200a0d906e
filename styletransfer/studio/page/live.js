// The socket: state, progress and pictures from the server. It connects again by itself.
import { adopt, active, change, emit, same, show, state, value } from "./store.js";
import { catchUp, settle, steering } from "./steer.js";
import { get } from "./http.js";

let wait = 500; // milliseconds until the next attempt
let known = null; // the job as the last message had it
let runsSeen = null;
let told = null; // the last message; the server repeats it until the next job

/** Let the form follow the job: another tab may steer it, an undo, or a refusal. */
function follow(job, refused) {
  settle(job, refused);
  if (active(job)) {
    if (known?.id !== job.id && [job.id, "asked"].includes(state.started)) catchUp(job);
    else if (!known) adopt(job.settings, "server");
    else if (
      !steering() &&
      (refused || known?.id !== job.id || !same(known.settings, job.settings))
    ) {
      const steered = [...state.controls.values()].filter((control) => control.steerable);
      change(
        Object.fromEntries(steered.map(({ key }) => [key, value(key, job.settings)])),
        "server",
      );
    }
    if (known?.id !== job.id) show("job");
  }
  if (!known || known.id !== job.id || !steering()) known = job;
}

async function takeState(message) {
  const other = state.job?.id !== message.job?.id;
  state.job = message.job;
  state.queue = message.queue;
  if (other) state.progress = null;
  const news = message.message && !same(message.message, told) ? message.message : null;
  told = message.message;
  if (message.job) follow(message.job, news !== null);
  emit("job");
  if (other) emit("otherjob");
  if (news) emit("refusal", news);
  if (runsSeen !== message.runs_changed) {
    runsSeen = message.runs_changed;
    await refreshRuns();
  }
}

export async function refreshRuns() {
  try {
    state.runs = await get("/api/runs");
  } catch {
    return; // the socket says when the server is gone
  }
  emit("runs");
}

function take(event) {
  if (event.data instanceof Blob) return emit("preview", event.data);
  const message = JSON.parse(event.data);
  if (message.type === "state") return takeState(message);
  state.progress = message;
  return emit("progress", message);
}

async function lost() {
  emit("connection", false);
  setTimeout(connect, wait);
  wait = Math.min(5000, wait * 1.6);
}

export function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/live`);
  socket.addEventListener("open", () => {
    wait = 500;
    runsSeen = null;
    emit("connection", true);
  });
  socket.addEventListener("message", take);
  socket.addEventListener("close", lost);
}
