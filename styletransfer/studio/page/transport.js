// Paint, pause, go on, stop; how far it is; and what waits.
import { alone, busy, button, clicked, el, enable, find, say } from "./dom.js";
import { active, attempt, emit, on } from "./store.js";
import { show, shownId, shownRun, state, titleOf } from "./store.js";

const WORDS = {
  starting: "Starting",
  painting: "Painting",
  paused: "Paused",
  stopping: "Stopping",
  finished: "Finished",
  stopped: "Stopped",
  failed: "Failed",
  "gave up": "Gave up",
  running: "Being painted",
};
let spoken = "";
let isLost = false; // whether the server does not answer

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Send the settings as a new run. */
const paint = alone(async () => {
  emit("asked");
  const begins = (state.asked = !active());
  const added = attempt("/api/queue", { settings: state.settings });
  if (!(await busy(find(begins ? "go" : "enqueue"), added))) state.asked = false;
  else if (begins) show("current");
  else say("It waits for its turn.");
});

const act = (action, body) => attempt(`/api/queue/${state.current.id}/${action}`, body);

function go() {
  if (!active()) return paint();
  return act(state.current.status === "paused" ? "resume" : "pause");
}

/** What a run does, or has come to, in a line. */
export function statusText(run) {
  if (!run) return "First look";
  const { step, steps, scale, scales, seconds, left, loss } = reported(run);
  const word = WORDS[run.status];
  if (run.status === "failed") return `${word}: ${run.error ?? "see the terminal"}`;
  const unit = run.is_film ? "frame" : "step";
  const units = step === 1 ? unit : `${unit}s`;
  if (!active(run)) return step ? `${word} after ${step} ${units}, ${clock(seconds)}` : word;
  if (run.status === "starting") return word;
  if (!step) return word; // a film before its first frame
  const parts = [`${word}: ${unit} ${step} of ${steps}`];
  if (scales > 1) parts.push(`scale ${scale} of ${scales}`);
  if (loss) parts.push(`loss ${loss.toPrecision(3)}`);
  if (run.status === "painting" && left !== null) parts.push(`${clock(left)} left`);
  if (state.target === "next") parts.push("Queue paints what is chosen now");
  return parts.join(" · ");
}

/** Where a run is, as far as it has been told. */
const reported = (run) => (state.progress?.id === run.id && active(run) ? state.progress : run);

function drawProgress() {
  const [run, { current }] = [shownRun(), state];
  find("status").textContent = find("status").title = isLost
    ? "Not connected"
    : statusText(run);
  const { step, steps } = run && active(run) ? reported(run) : {};
  const share = steps ? step / steps : Number(run?.status === "finished");
  find("done").style.transform = `scaleX(${share})`;
  if (!current) return;
  // Changes of state and each quarter are spoken, and not every step.
  const done = current.status === "painting" ? reported(current) : {};
  const quarter = done.steps ? `, ${25 * Math.floor((4 * done.step) / done.steps)} %` : "";
  if (spoken !== WORDS[current.status] + quarter) say((spoken = WORDS[current.status] + quarter));
}

function drawButtons() {
  const run = state.current;
  const running = active();
  const steady = ["painting", "paused"].includes(run?.status);
  find("go").textContent = !running ? "Paint" : run.status === "paused" ? "Go on" : "Pause";
  enable(find("go"), !running || steady);
  enable(find("stop"), running && run.status !== "stopping");
  find("enqueue").hidden = !running || state.target === "running";
  document.title = running && run.steps ? `${WORDS[run.status]} · Studio` : "Studio";
}

/** A line about a run that is not on the stage, with what can be done. */
function lineOf(run, word, action, act) {
  const title = titleOf(run);
  const label = { "aria-label": `${action} ${title}` };
  return el("li", el("span", `${word}: ${title}`), button(action, act, label));
}

function drawQueue() {
  const lines = state.queue.map((run) =>
    lineOf(run, "Next", "Cancel", () => attempt(`/api/queue/${run.id}/cancel`)),
  );
  if (active() && shownId() !== state.current.id)
    lines.unshift(lineOf(state.current, "Being painted", "Show", () => show("current")));
  find("queue").hidden = !lines.length;
  const had = find("queue").contains(document.activeElement);
  find("queue").replaceChildren(...lines);
  if (had) (find("queue").querySelector("button") ?? find("go")).focus();
}

export function startTransport() {
  clicked({ go, stop: () => act("stop") });
  clicked({ enqueue: () => paint() });
  on("current view settings target", drawButtons);
  on("current pictures view", drawQueue);
  on("connection", (why) => {
    isLost = Boolean(why);
    drawProgress();
  });
  on("current progress settings target view pictures runs", drawProgress);
}
