// Paint, pause, continue, stop; how far it is; and what waits.
import { alone, busy, button, clicked, el, enable, find, say } from "./dom.js";
import { active, attempt, forgive, on, prepare, runOf, settings, show } from "./store.js";
import { state, stopped, subject, titleOf } from "./store.js";

const inWords = (status) =>
  status === "running" ? "Being painted" : status[0].toUpperCase() + status.slice(1);
let spoken = "";

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Send the panel's settings as a new run, or continue the run that they belong to. */
const paint = alone(async () => {
  const [begins, run] = [!active(), stopped()];
  forgive();
  if (!run) prepare(settings());
  state.asked = begins && !run;
  const asked = run
    ? attempt(`/api/runs/${run.id}/resume`)
    : attempt("/api/queue", { settings: state.next });
  const added = await busy(find(begins ? "go" : "enqueue"), asked);
  if (!added) state.asked = false;
  else if (begins) show(added.id);
  else say("It waits for its turn.");
});

const act = (action, body) => attempt(`/api/queue/${state.running.id}/${action}`, body);

function go() {
  if (!active()) return paint();
  return act(state.running.status === "paused" ? "resume" : "pause");
}

/** What a run does, or has come to, in a line. */
export function statusText(run) {
  if (!run) return "First look";
  const { step, steps, scale, scales, seconds, left, loss } = run;
  const word = inWords(run.status);
  if (run.status === "failed") return `${word}: ${run.error ?? "see the terminal"}`;
  const unit = run.is_film ? "frame" : "step";
  const units = step === 1 ? unit : `${unit}s`;
  if (!active(run)) return step ? `${word} after ${step} ${units}, ${clock(seconds)}` : word;
  if (run.status === "starting" || !step) return word; // a film has no frame at first
  const parts = [`${word}: ${unit} ${step} of ${steps}`];
  if (scales > 1) parts.push(`scale ${scale} of ${scales}`);
  if (loss) parts.push(`loss ${loss.toPrecision(3)}`);
  if (run.status === "painting" && left !== null) parts.push(`${clock(left)} left`);
  return parts.join(" · ");
}

function drawProgress() {
  const [run, { running, lost }] = [runOf(state.view), state];
  find("status").textContent = find("status").title = lost ? "Not connected" : statusText(run);
  const { step, steps } = active(run) ? run : {};
  const share = steps ? step / steps : Number(run?.status === "finished");
  find("done").style.transform = `scaleX(${share})`;
  if (!running) return;
  const words = inWords(running.status); // changes of state are spoken, and not every step
  if (spoken !== words) say((spoken = words));
}

function drawButtons() {
  const { status, steps } = state.running ?? {};
  const goesOn = active() ? status === "paused" : stopped();
  find("go").textContent = goesOn ? "Continue" : active() ? "Pause" : "Paint";
  enable(find("go"), !active() || ["painting", "paused"].includes(status));
  enable(find("stop"), active() && status !== "stopping");
  find("enqueue").hidden = !active() || active(subject());
  document.title = active() && steps ? `${inWords(status)} · Studio` : "Studio";
}

/** A line about a run that is not on the stage, with what can be done. */
function lineOf(run, word, action, act) {
  const title = titleOf(run);
  const label = { "aria-label": `${action} ${title}` };
  return el("li", el("span", `${word}: ${title}`), button(action, act, label));
}

function drawQueue() {
  const cancel = ({ id }) => attempt(`/api/queue/${id}/cancel`);
  const lines = state.queue.map((run) => lineOf(run, "Next", "Cancel", () => cancel(run)));
  const { running, view } = state;
  if (active() && view !== running.id)
    lines.unshift(lineOf(running, "Being painted", "Show", () => show(running.id)));
  find("queue").hidden = !lines.length;
  const had = find("queue").contains(document.activeElement);
  find("queue").replaceChildren(...lines);
  if (had) (find("queue").querySelector("button") ?? find("go")).focus();
}

export function startTransport() {
  clicked({ go, stop: () => act("stop") });
  clicked({ enqueue: () => paint() });
  on("running view runs", drawButtons);
  on("running pictures view", drawQueue);
  on("running progress view runs connection", drawProgress);
}
