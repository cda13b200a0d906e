// The socket: state, progress and pictures from the server; and what a person changes meanwhile,
// which goes to the painter at once. The socket connects again by itself.
import { debounced } from "./dom.js";
import { active, adopt, attempt, change, emit, fail, get, on, post } from "./store.js";
import { same, show, state, value, values } from "./store.js";

// Milliseconds: for the painter to take what it was sent; until the next attempt to connect.
const [PATIENCE, AGAIN] = [5000, 1500];

let followed = null; // the run as the form has it
let runsSeen = null;
let told = null; // the number of the last message; the server repeats it until the next run
let wish = null; // { id, settings }: how the run should be, until the painter has it so
let sending = false;
let newest = null; // the socket

/** Wish for other values of some keys, on top of what was wished for before. */
function wishFor(keys) {
  const steerable = keys.filter((key) => state.controls.get(key).steerable);
  if (!steerable.length) return;
  const { id } = state.current;
  const settings = { ...(wish?.id === id ? wish.settings : state.current.settings) };
  for (const key of steerable) settings[key] = value(key);
  wish = { id, settings };
  soon();
}

/** One request at a time; what changes meanwhile goes with the next: the latest wins. */
async function send() {
  if (sending || !wish || !active() || state.current.status === "stopping") return;
  const sent = wish;
  sending = true;
  try {
    await post(`/api/queue/${sent.id}/steer`, { settings: sent.settings });
    setTimeout(() => wish === sent && (wish = null), PATIENCE);
    settle(state.current);
  } catch (refusal) {
    if (wish === sent) wish = null;
    fail(refusal);
  }
  sending = false;
  if (wish !== sent) send();
}

const soon = debounced(send, 150);

/** Note what the painter has; what it refused is not waited for. */
function settle(run, refused = false) {
  const isOver = refused || !active(run) || run.id !== wish?.id;
  if (isOver || same(values(run.settings), values(wish.settings))) wish = null;
}

/** Let a finished picture be painted on, with the settings as they are now. */
export async function paintOn(run) {
  const settings = { ...run.settings, ...values(state.settings, { steerable: true }) };
  if (await attempt(`/api/queue/${run.id}/steer`, { settings })) show("current");
}

/** Let the form follow the run: another tab may steer it, an undo, or a refusal. */
function follow(run, refused) {
  settle(run, refused);
  const isNew = followed?.id !== run.id;
  if (active(run)) {
    if (isNew && [run.id, "asked"].includes(state.started)) {
      const settings = values(run.settings); // more may have been changed since it was begun
      wishFor(Object.keys(settings).filter((key) => !same(settings[key], value(key))));
    } else if (!followed) adopt(run.settings, "server");
    else if (!wish && (refused || isNew || !same(followed.settings, run.settings)))
      change(values(run.settings, { steerable: true }), "server");
    if (isNew) show("current");
  }
  if (isNew || !wish) followed = run;
}

async function takeState({ current, queue, runs_changed, message }) {
  const isOther = state.current?.id !== current?.id;
  Object.assign(state, { current, queue });
  if (isOther) state.progress = null;
  const news = message && told !== null && message.number !== told ? message : null;
  told = message?.number ?? 0; // of the first state on it is no news
  if (current) follow(current, news !== null);
  emit("current");
  if (news) emit("refusal", news);
  if (runsSeen !== runs_changed) {
    runsSeen = runs_changed;
    await refreshRuns();
  }
}

export async function refreshRuns() {
  state.runs = await get("/api/runs").catch(() => state.runs); // the socket says what is wrong
  emit("runs");
}

function take({ data }) {
  if (data instanceof Blob) return emit("preview", data);
  const message = JSON.parse(data);
  if (message.type === "state") return takeState(message);
  state.progress = message;
  return emit("progress", message);
}

export function connect() {
  const socket = new WebSocket(`ws://${location.host}/live`);
  newest = socket;
  socket.addEventListener("open", () => {
    runsSeen = null;
    emit("connection", null);
  });
  socket.addEventListener("message", take);
  socket.addEventListener("close", async () => {
    setTimeout(connect, AGAIN);
    const why = await get("/api/pictures").catch((refusal) => refusal.message);
    const busy = "Too many pages show this studio; close one.";
    if (socket === newest) emit("connection", typeof why === "string" ? why : busy);
  });
}

on("settings", ({ keys, by }) => {
  if (by === "person" && active()) wishFor(keys);
});
