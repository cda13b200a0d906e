// The losses over the steps, by term, on a logarithmic axis.
import { el, find } from "./dom.js";
import { get } from "./http.js";
import { on, shownRun, state } from "./store.js";

const [WIDTH, HEIGHT] = [420, 180];
const MOST = 300; // points of a line; more would not be seen
const history = new Map(); // step -> { name: loss }
const hidden = new Set(); // terms that are switched off
const known = new Set();
let drawnRun = null;
let scheduled = false;

const svg = (tag, properties) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  return element;
};

/** Sums first; layers are listed, but not drawn until asked for. */
const SUMS = ["total", "content", "style"];
const ordered = () => [
  ...SUMS.filter((name) => known.has(name)),
  ...[...known].filter((name) => !SUMS.includes(name)),
];

const tint = (name) => `c${ordered().indexOf(name) % 8}`;

function add(step, losses) {
  history.set(step, losses);
  for (const name of Object.keys(losses)) {
    if (known.has(name)) continue;
    known.add(name);
    if (!SUMS.includes(name)) hidden.add(name);
  }
}

/** Say where a loss stands: x by step, y by the logarithm. */
function axes(steps, names) {
  const seen = steps
    .flatMap((step) => names.map((name) => history.get(step)[name]))
    .filter((one) => one > 0);
  if (!seen.length) return null;
  const [low, high] = [Math.log10(Math.min(...seen)), Math.log10(Math.max(...seen))];
  const [from, to] = [Math.max(low, high - 6) - 0.05, high + 0.05];
  const last = Math.max(steps.at(-1), 2);
  return {
    x: (step) => (WIDTH * (step - 1)) / (last - 1),
    y: (loss) => HEIGHT * (1 - (Math.log10(loss) - from) / (to - from)),
    decades: Array.from({ length: 8 }, (_, at) => Math.ceil(from) + at).filter(
      (power) => power < to,
    ),
    last,
  };
}

function lines(steps, names, axis) {
  const box = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    preserveAspectRatio: "none",
    "aria-label": `losses over ${axis.last} steps, on a logarithmic axis`,
  });
  for (const power of axis.decades)
    box.append(
      svg("line", {
        class: "level",
        x1: 0,
        x2: WIDTH,
        y1: axis.y(10 ** power),
        y2: axis.y(10 ** power),
      }),
    );
  for (const name of names.toReversed()) {
    const points = steps
      .filter((step) => history.get(step)[name] > 0)
      .map((step) => `${axis.x(step).toFixed(1)},${axis.y(history.get(step)[name]).toFixed(1)}`);
    box.append(svg("polyline", { points: points.join(" "), class: tint(name) }));
  }
  return box;
}

function levels(axis) {
  return axis.decades.map((power) => {
    const label = el(
      "span",
      { class: "level", "aria-hidden": "true" },
      String(Number((10 ** power).toPrecision(1))),
    );
    label.style.top = `${(100 * axis.y(10 ** power)) / HEIGHT}%`;
    return label;
  });
}

function plot() {
  const all = [...history.keys()].sort((one, other) => one - other);
  const every = Math.ceil(all.length / MOST);
  const steps = all.filter((_, place) => place % every === 0 || place === all.length - 1);
  const names = ordered().filter((name) => !hidden.has(name));
  const axis = steps.length > 1 && axes(steps, names);
  if (!axis)
    return [
      el(
        "p",
        { class: "muted" },
        history.size ? "No term is chosen." : "They appear as soon as something is painted.",
      ),
    ];
  return [
    lines(steps, names, axis),
    ...levels(axis),
    el("span", { class: "last", "aria-hidden": "true" }, `step ${axis.last}`),
  ];
}

function toggle(name) {
  if (!hidden.delete(name)) hidden.add(name);
  draw();
}

function legend() {
  const last = history.get(Math.max(...history.keys())) ?? {};
  const focus = document.activeElement?.dataset.term;
  const shown = ordered().filter((name) => name in last || !hidden.has(name));
  const keys = shown.map((name) =>
    el(
      "button",
      {
        type: "button",
        class: "term",
        "data-term": name,
        "aria-pressed": String(!hidden.has(name)),
        onclick: () => toggle(name),
      },
      el("i", { class: `swatch ${tint(name)}` }),
      el("span", {}, name),
      el("span", { class: "number" }, last[name] ? String(Number(last[name].toPrecision(3))) : ""),
    ),
  );
  find("terms").replaceChildren(...keys);
  keys.find((key) => key.dataset.term === focus)?.focus();
}

function draw() {
  scheduled = false;
  find("plot").replaceChildren(...plot());
  legend();
}

function soon() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(draw, 250);
}

async function loadRun(id) {
  drawnRun = id;
  history.clear();
  known.clear();
  hidden.clear();
  // A job that has just begun has no losses yet, and reports every step from now on.
  if (id && !(id === state.job?.id && !state.job.step)) {
    try {
      const { steps, names } = await get(`/api/runs/${id}/losses`);
      if (drawnRun !== id) return;
      steps.forEach((step, place) =>
        add(
          step,
          Object.fromEntries(Object.entries(names).map(([name, all]) => [name, all[place]])),
        ),
      );
    } catch {
      // A run without losses has no curve.
    }
  }
  soon();
}

function take(progress) {
  if (drawnRun !== progress.job) return;
  for (const [step, losses] of progress.history) add(step, losses);
  soon();
}

/** The job's, or those of the result that is shown. */
function follow() {
  const id = state.view === "content" ? null : shownRun();
  if (id !== drawnRun) loadRun(id);
}

export function startCurves() {
  find("curves").append(
    el("div", { id: "plot", class: "plot" }),
    el("div", { id: "terms", class: "terms", role: "group", "aria-label": "Terms" }),
  );
  on("view otherjob", follow);
  on("progress", take);
  // An undo takes steps back, and what came after them.
  on("job", () => {
    follow();
    if (drawnRun !== state.job?.id) return;
    for (const step of [...history.keys()])
      if (step > state.job.step && state.job.status !== "painting") history.delete(step);
  });
  draw();
}
