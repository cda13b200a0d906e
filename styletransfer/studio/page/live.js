// The socket: state, progress and pictures from the server; and what a person changes meanwhile,
// which goes to the painter at once. The socket connects again by itself.
import { debounced } from "./dom.js";
import { active, adopt, change, emit, fail, get, on, post } from "./store.js";
import { same, show, state, value, values } from "./store.js";

const AGAIN = 1500; // milliseconds until the next attempt to connect

let followed = null; // the run as the form has it
let edits = {}; // what was changed here and the painter has not done
let mine = 0; // the number of the last steering from here, by which the painter says it is done
let runsSeen = null;
let newest = null; // the socket

/** The latest edits go together, one request at a time. */
const soon = debounced(async () => {
  const [run, sent] = [state.current, edits];
  if (!active(run) || run.status === "stopping") return forget();
  const settings = { ...run.settings, ...sent };
  const asked = post(`/api/queue/${run.id}/steer`, { settings });
  const answer = await asked.catch((refusal) => ({ refusal }));
  if (sent !== edits) return null; // more has come, and goes by itself
  if (answer.refusal) {
    forget();
    change(values(state.current.settings, { steerable: true }), "server");
    fail(answer.refusal);
  } else mine = answer.number;
  return follow(state.current);
}, 150);

function forget() {
  edits = {};
  mine = 0;
}

function edit(keys) {
  const steerable = keys.filter((key) => state.controls.get(key).steerable);
  if (!steerable.length) return;
  edits = { ...edits, ...Object.fromEntries(steerable.map((key) => [key, value(key)])) };
  mine = Infinity;
  soon();
}

/** Let the form show the settings of the run at work, or those of the next one. */
export function aim(target) {
  if (target === state.target) return;
  if (target === "running") state.next = { ...state.settings };
  state.target = target;
  adopt(target === "running" ? state.current.settings : state.next, "server");
  emit("target");
}

/** Let the form follow the run, once what was changed here is done: another tab may steer it. */
function follow(run) {
  const isNew = followed?.id !== run.id || (active(run) && !active(followed));
  if (!active(run)) {
    forget();
    if (state.target === "running") state.target = "next"; // with the settings of that picture
    emit("target");
  } else if (isNew && state.asked) {
    const settings = values(run.settings); // more may have been changed since it was asked for
    state.next = { ...state.settings };
    state.target = "running";
    emit("target");
    edit(Object.keys(settings).filter((key) => !same(settings[key], value(key))));
  } else if (isNew && (!followed || !active(followed) || state.target === "running")) {
    if (state.target === "running") adopt(run.settings, "server");
    else aim("running");
  } else if (state.target === "running") {
    if (run.done < mine) return;
    if (run.done !== followed.done || !same(followed.settings, run.settings))
      change(values(run.settings, { steerable: true }), "server");
  }
  if (run.done >= mine) forget();
  if (isNew) state.asked = false;
  const isAsked = followed || !location.hash; // the address may name a result
  if (isNew && active(run) && isAsked) show("current");
  followed = run;
}

async function takeState({ current, queue, runs_changed }) {
  if (state.current?.id !== current?.id) state.progress = null;
  Object.assign(state, { current, queue });
  if (current) follow(current);
  emit("current");
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
  if (message.type === "message") return emit("refusal", message);
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
    const why = await get("/api/pictures").then(() => null, (refusal) => refusal.message);
    if (why && socket === newest) emit("connection", why);
  });
}

on("settings", ({ keys, by }) => {
  if (by !== "person" || state.target === "next") return;
  const isFixed = state.current.is_film || keys.some((key) => !state.controls.get(key).steerable);
  if (!isFixed) return edit(keys);
  state.target = "next"; // only the next run can have it
  emit("target");
});
