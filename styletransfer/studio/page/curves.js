// The losses over the steps, by term, on a logarithmic axis.
import { alone, button, el, find, pause, press, refill } from "./dom.js";
import { get, on, shownId, state } from "./store.js";

const [WIDTH, HEIGHT] = [420, 180];
const MOST = 300; // points of a line; more would not be seen
/** Sums first; layers are listed, but not drawn until asked for. */
const SUMS = ["total", "content", "style"];

const history = new Map(); // step -> { name: loss }
const terms = new Map(); // name -> whether it is drawn
let drawnRun = null;

function ordered() {
  const layers = [...terms.keys()].filter((name) => !SUMS.includes(name));
  return [...SUMS.filter((name) => terms.has(name)), ...layers];
}

const tint = (name) => `c${ordered().indexOf(name) % 8}`;

function add(step, losses) {
  history.set(step, losses);
  for (const name of Object.keys(losses))
    if (!terms.has(name)) terms.set(name, SUMS.includes(name));
}

/** Say where a loss stands: x by step, y by the logarithm; null if there is nothing to draw. */
function axes(steps, names) {
  const losses = steps.flatMap((step) => names.map((name) => history.get(step)[name]));
  const positive = losses.filter((loss) => loss > 0);
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

function lines(steps, names, { x, y, decades, last }) {
  const levels = decades.map((level) => `<path class="level" d="M0 ${y(level)}H${WIDTH}"/>`);
  const curves = names.toReversed().map((name) => {
    const points = steps
      .filter((step) => history.get(step)[name] > 0)
      .map((step) => `${x(step).toFixed(1)},${y(history.get(step)[name]).toFixed(1)}`);
    return `<polyline class="${tint(name)}" points="${points.join(" ")}"/>`;
  });
  const box = el("template");
  const label = `losses over ${last} steps, on a logarithmic axis`;
  box.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img"
    aria-label="${label}">${levels.join("")}${curves.join("")}</svg>`;
  return box.content;
}

function plot() {
  const all = [...history.keys()].sort((one, other) => one - other);
  const every = Math.ceil(all.length / MOST);
  const steps = all.filter((_, place) => place % every === 0 || place === all.length - 1);
  const names = ordered().filter((name) => terms.get(name));
  const axis = axes(steps, names);
  if (!axis) {
    const early = "They appear as soon as something is painted.";
    return [el("p.muted", history.size ? "No term is chosen." : early)];
  }
  const labels = axis.decades.map((level) => {
    const label = el("span.level", { "aria-hidden": "true" }, String(Number(level.toPrecision(1))));
    label.style.top = `${(100 * axis.y(level)) / HEIGHT}%`;
    return label;
  });
  const last = el("span.last", { "aria-hidden": "true" }, `step ${axis.last}`);
  return [lines(steps, names, axis), ...labels, last];
}

function legend() {
  const last = history.get(Math.max(...history.keys())) ?? {};
  const shown = ordered().filter((name) => name in last || terms.get(name));
  const keys = shown.map((name) => {
    const number = last[name] ? String(Number(last[name].toPrecision(3))) : "";
    const parts = [el(`i.swatch.${tint(name)}`), el("span", name), el("span.number", number)];
    const toggle = () => {
      terms.set(name, !terms.get(name));
      draw();
    };
    const key = button(parts, toggle, { class: "term", "data-focus": name });
    press(key, terms.get(name));
    return key;
  });
  refill(find("terms"), keys);
}

function draw() {
  find("plot").replaceChildren(...plot());
  legend();
}

const soon = alone(() => pause(250).then(draw));

async function load(id) {
  drawnRun = id;
  for (const one of [history, terms]) one.clear();
  // A run that has just begun has no losses yet, and reports every step from now on.
  if (id && !(id === state.current?.id && !state.current.step)) {
    const steps = await get(`/api/runs/${id}/losses`).catch(() => []); // none: no curve
    if (drawnRun !== id) return;
    for (const [step, losses] of steps) add(step, losses);
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
    for (const [step, losses] of progress.history) add(step, losses);
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
