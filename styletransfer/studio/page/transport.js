// Paint, pause, go on, stop; how far it is; what waits; and to which moments one can go back.
import { alone, button, clicked, el, enable, find, say, unlessSame } from "./dom.js";
import { planned } from "./easel.js";
import { paintOn } from "./live.js";
import { active, attempt, emit, fail, on, PICTURES, post } from "./store.js";
import { show, state, titleOf, value } from "./store.js";

const WORDS = {
  starting: "Starting",
  painting: "Painting",
  paused: "Paused",
  stopping: "Stopping",
  finished: "Finished",
  stopped: "Stopped, and kept",
  failed: "Failed",
};
let spoken = "";

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
  const begins = !active();
  if (begins) state.started = "asked";
  try {
    const { id } = await post("/api/queue", { settings: state.settings });
    if (begins) {
      state.started = id;
      show("current");
    } else say("It waits for its turn.");
  } catch (refusal) {
    state.started = null;
    fail(refusal);
  }
});

const act = (action, body) => attempt(`/api/queue/${state.current.id}/${action}`, body);

function go() {
  if (!active()) return paint();
  return act(state.current.status === "paused" ? "resume" : "pause");
}

function statusText() {
  const run = state.current;
  if (!run || (state.view === "content" && !active())) {
    const [width, height] = planned(state.settings);
    return `First look. Paint makes ${width} × ${height} pixels in ${value("steps")} steps`;
  }
  const { step, steps, scale, scales, seconds, left } = reported();
  const word = WORDS[run.status];
  if (run.status === "failed") return `${word}: ${run.error ?? "see the terminal"}`;
  if (!active()) return `${word} after ${step} steps, ${clock(seconds)}`;
  if (run.status === "starting") return word;
  const parts = [`${word}: step ${step} of ${steps}`, `scale ${scale} of ${scales}`];
  if (run.status === "painting" && left !== null) parts.push(`${clock(left)} left`);
  return parts.join(" · ");
}

/** Where the run is, as far as it has been told. */
const reported = () => (state.progress?.id === state.current?.id ? state.progress : state.current);

function drawProgress() {
  find("status").textContent = find("status").title = statusText();
  const share = reported()?.steps ? reported().step / reported().steps : 0;
  find("done").style.transform = `scaleX(${share})`;
  if (!state.current) return;
  // Changes of state and each quarter are spoken, and not every step.
  const { status } = state.current;
  const quarter = status === "painting" && share ? `, ${25 * Math.floor(4 * share)} %` : "";
  if (spoken !== WORDS[status] + quarter) say((spoken = WORDS[status] + quarter));
}

function drawButtons() {
  const run = state.current;
  const running = active();
  const steady = ["painting", "paused"].includes(run?.status);
  find("go").textContent = !running ? "Paint" : run.status === "paused" ? "Go on" : "Pause";
  enable(find("go"), !running || steady);
  enable(find("stop"), running && run.status !== "stopping");
  enable(find("remember"), steady);
  find("enqueue").hidden = !running;
  find("further").hidden = running || !run?.can_steer;
  document.body.dataset.status = run?.status ?? "idle";
  document.title = running && run.steps ? `${WORDS[run.status]} · Studio` : "Studio";
}

function drawQueue() {
  find("queue").hidden = !state.queue.length;
  const lines = state.queue.map(({ id, settings }) => {
    const title = titleOf(settings);
    const cancel = () => attempt(`/api/queue/${id}/cancel`);
    const label = { "aria-label": `Cancel ${title}` };
    return el("li", el("span", `Next: ${title}`), button("Cancel", cancel, label));
  });
  find("queue").replaceChildren(...lines);
}

/** "before objective.content_weight=0.4" in the words of the form. */
function inWords(reason) {
  for (const { key, label, kind } of state.controls.values())
    if (reason.startsWith(`before ${key}=`))
      return [...PICTURES, "mapping"].includes(kind)
        ? `before another ${label.toLowerCase()}`
        : reason.replace(`${key}=`, `${label} = `);
  return reason;
}

const drawSnapshots = unlessSame((id, snapshots, isOpen) => {
  find("no-moments").hidden = snapshots.length > 0;
  const lines = snapshots.map(({ number, step, reason }) => {
    const words = inWords(reason);
    const back = button("Go back", () => isOpen && act("undo", { snapshot: number }), {
      "aria-label": `Go back to step ${step}, ${words}`,
      "aria-disabled": String(!isOpen),
    });
    return el("li", el("span.number", `Step ${step}`), el("span.reason", words), back);
  });
  find("moments").replaceChildren(...lines);
  find("moments").scrollTop = find("moments").scrollHeight;
});

export function startTransport() {
  clicked({ go, stop: () => act("stop"), remember: () => act("snapshot") });
  clicked({ enqueue: paint, further: () => paintOn(state.current) });
  on("current", () => {
    const run = state.current;
    drawButtons();
    drawSnapshots(run?.id, run?.snapshots ?? [], Boolean(run?.can_steer));
  });
  on("current pictures", drawQueue);
  on("current progress settings view pictures", drawProgress);
}
