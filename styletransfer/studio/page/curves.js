// The losses over the steps, by kind, on a logarithmic axis.
import { alone, el, find, pause } from "./dom.js";
import { get, on, shownId, state } from "./store.js";

const [WIDTH, HEIGHT] = [420, 180];
const MOST = 300; // points of a line; more would not be seen
const WORDS = {
  total: "All together",
  content: "Photograph",
  style: "Style",
  match: "Strokes where they belong",
  total_variation: "Smoothness",
  temporal: "Frames are alike",
};

const history = new Map(); // step -> { kind: loss }
let drawnRun = null;

/** Say where a loss stands: x by step, y by the logarithm; null if there is nothing to draw. */
function axes(steps) {
  const positive = steps.flatMap((step) => Object.values(history.get(step))).filter((x) => x > 0);
  if (steps.length < 2 || !positive.length) return null;
  const [low, high] = [Math.log10(Math.min(...positive)), Math.log10(Math.max(...positive))];
  const [from, to] = [Math.max(low, high - 6) - 0.05, high + 0.05];
  const last = Math.max(steps.at(-1), 2);
  const powers = Array.from({ length: 8 }, (_, at) => Math.ceil(from) + at);
  return {
    x: (step) => (WIDTH * (step - 1)) / (last - 1),
    y: (loss) => HEIGHT * (1 - (Math.log10(loss) - from) / (to - from)),
    decades: powers.filter((power) => power < to).map((power) => 10 ** power),
    last,
  };
}

function lines(steps, kinds, { x, y, decades, last }) {
  const levels = decades.map((level) => `<path class="level" d="M0 ${y(level)}H${WIDTH}"/>`);
  const curves = kinds.map((kind) => {
    const points = steps
      .filter((step) => history.get(step)[kind] > 0)
      .map((step) => `${x(step).toFixed(1)},${y(history.get(step)[kind]).toFixed(1)}`);
    return `<polyline class="${kind}" points="${points.join(" ")}"/>`;
  });
  const box = el("template");
  const label = `losses over ${last} steps, on a logarithmic axis`;
  box.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
    aria-label="${label}">${levels.join("")}${curves.join("")}</svg>`;
  return box.content;
}

function draw() {
  const all = [...history.keys()].sort((one, other) => one - other);
  const every = Math.ceil(all.length / MOST);
  const steps = all.filter((_, place) => place % every === 0 || place === all.length - 1);
  const latest = history.get(all.at(-1)) ?? {};
  const kinds = Object.keys(WORDS).filter((kind) => kind in latest);
  const axis = axes(steps);
  find("terms").hidden = !axis;
  if (!axis) {
    const early = el("p.muted", "They appear as soon as something is painted.");
    return find("plot").replaceChildren(early);
  }
  const labels = axis.decades.map((level) => {
    const label = el("span.level", { "aria-hidden": "true" }, String(Number(level.toPrecision(1))));
    label.style.top = `${(100 * axis.y(level)) / HEIGHT}%`;
    return label;
  });
  const last = el("span.last", { "aria-hidden": "true" }, `step ${axis.last}`);
  find("plot").replaceChildren(lines(steps, kinds, axis), ...labels, last);
  const keys = kinds.map((kind) => {
    const number = latest[kind] ? String(Number(latest[kind].toPrecision(3))) : "";
    return el("li", el(`i.swatch.${kind}`), el("span", WORDS[kind]), el("span.number", number));
  });
  return find("terms").replaceChildren(...keys);
}

const soon = alone(() => pause(250).then(draw));

async function load(id) {
  drawnRun = id;
  history.clear();
  if (id) {
    const steps = await get(`/api/runs/${id}/losses`).catch(() => []); // none: no curve
    if (drawnRun !== id) return;
    for (const [step, losses] of steps) history.set(step, losses);
  }
  soon();
}

/** Those of the run that is shown. */
function follow() {
  const id = state.view === "content" ? null : shownId();
  if (id !== drawnRun) load(id);
}

export function startCurves() {
  on("view", follow);
  on("progress", (progress) => {
    if (drawnRun !== progress.id) return;
    for (const [step, losses] of progress.history) history.set(step, losses);
    soon();
  });
  // An undo takes steps back, and what came after them.
  on("current", () => {
    follow();
    if (!drawnRun || drawnRun !== state.current?.id || state.current.status === "painting") return;
    for (const step of [...history.keys()]) if (step > state.current.step) history.delete(step);
  });
  draw();
}
