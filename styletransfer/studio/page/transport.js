// Paint, pause, go on, stop; how far it is; and what waits.
import { button, el, enable, enabled, find, say } from "./dom.js";
import { post } from "./http.js";
import { active, attempt, emit, fail, on, show, state, value } from "./store.js";
import { planned, titleOf } from "./easel.js";
import { paintOn } from "./steer.js";

const WORDS = {
  starting: "Starting",
  painting: "Painting",
  paused: "Paused",
  stopping: "Stopping",
  finished: "Finished",
  stopped: "Stopped, and kept",
  failed: "Failed",
};
let asking = false;

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Send the settings as a new job. */
async function paint() {
  if (asking) return;
  asking = true;
  emit("asked");
  const begins = !active();
  if (begins) state.started = "asked";
  try {
    const { id } = await post("/api/jobs", { settings: state.settings });
    if (begins) {
      state.started = id;
      show("job");
    } else say("It waits for its turn.");
  } catch (refusal) {
    state.started = null;
    fail(refusal);
  }
  asking = false;
}

const act = (action, body) => attempt(`/api/jobs/${state.job.id}/${action}`, body);

function go() {
  const status = state.job?.status;
  if (!enabled(find("go"))) return null;
  if (!active()) return paint();
  return act(status === "paused" ? "resume" : "pause");
}

/** What pressing Paint would make. */
function plan() {
  const [width, height] = planned(state.settings);
  return `${width} × ${height} pixels, ${value("steps")} steps`;
}

function statusText() {
  const job = state.job;
  if (!job || (state.view === "content" && !active())) return plan();
  const seen = { ...job, ...(state.progress?.job === job.id ? state.progress : {}) };
  const word = WORDS[job.status] ?? job.status;
  if (job.status === "failed") return `${word}: ${job.error ?? "see the terminal"}`;
  if (!active()) return `${word} after ${seen.step} steps, ${clock(seen.seconds)}`;
  if (job.status === "starting") return word;
  const parts = [
    `${word}: step ${seen.step} of ${seen.steps}`,
    `scale ${seen.scale} of ${seen.scales}`,
  ];
  if (job.status === "painting" && seen.left !== null) parts.push(`${clock(seen.left)} left`);
  return parts.join(" · ");
}

let spoken = "";

/** Speak of changes of state and of each quarter, and not of every step. */
function speak(share) {
  const words = WORDS[state.job.status];
  const quarter =
    state.job.status === "painting" && share ? `, ${25 * Math.floor(4 * share)} %` : "";
  if (spoken !== words + quarter) say((spoken = words + quarter));
}

function drawProgress() {
  find("status").textContent = statusText();
  find("status").title = statusText();
  const seen = state.progress?.job === state.job?.id ? (state.progress ?? state.job) : state.job;
  const share = seen && seen.steps ? seen.step / seen.steps : 0;
  find("done").style.transform = `scaleX(${share})`;
  if (state.job) speak(share);
}

function drawButtons() {
  const job = state.job;
  const running = active();
  const [go_, stop, remember, enqueue] = ["go", "stop", "remember", "enqueue"].map(find);
  go_.textContent = !running ? "Paint" : job.status === "paused" ? "Go on" : "Pause";
  enable(go_, !running || ["painting", "paused"].includes(job.status));
  enable(stop, running && job.status !== "stopping");
  enable(remember, running && ["painting", "paused"].includes(job.status));
  enqueue.hidden = !running;
  find("further").hidden = running || !job?.can_steer;
  document.body.dataset.status = job?.status ?? "idle";
  document.title = running && job.steps ? `${WORDS[job.status]} · Studio` : "Studio";
}

function drawQueue() {
  find("queue").hidden = !state.queue.length;
  find("queue").replaceChildren(
    ...state.queue.map(({ id, settings }) =>
      el(
        "li",
        {},
        el("span", {}, `Next: ${titleOf(settings)}`),
        button("Cancel", () => attempt(`/api/jobs/${id}/cancel`), {
          "aria-label": `Cancel ${titleOf(settings)}`,
        }),
      ),
    ),
  );
}

export function startTransport() {
  find("go").addEventListener("click", go);
  find("stop").addEventListener("click", () => enabled(find("stop")) && act("stop"));
  find("remember").addEventListener("click", () => enabled(find("remember")) && act("snapshot"));
  find("enqueue").addEventListener("click", paint);
  find("further").addEventListener("click", () => paintOn(state.job));
  on("job", () => {
    drawButtons();
    drawQueue();
    drawProgress();
  });
  on("progress settings view pictures", drawProgress);
  on("pictures", drawQueue);
}
