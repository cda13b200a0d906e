// Past results, as a strip.
import { el, find } from "./dom.js";
import { pictureUrl, runUrl } from "./http.js";
import { active, on, same, show, shownRun, state, value } from "./store.js";
import { titleOf } from "./easel.js";

let drawn = null;

function open(run) {
  show(active() && run.id === state.job?.id ? "job" : run.id);
  const focused = find("strip").querySelector(`[data-run="${run.id}"]`);
  focused?.focus();
}

function card(run) {
  const running = ["running", "queued"].includes(run.status);
  const content = value("content", run.settings);
  // What is not finished has no picture to show yet.
  const src =
    run.width && !running
      ? runUrl(run.id, "picture", `side=320&seconds=${run.seconds}`)
      : content && pictureUrl(content, 320);
  const image = src
    ? el("img", { src, alt: "", loading: "lazy", decoding: "async" })
    : el("i", {}, "no picture");
  const early =
    run.status === "finished"
      ? null
      : el("span", { class: "early" }, running ? "painting" : run.status);
  return el(
    "li",
    {},
    el(
      "button",
      {
        type: "button",
        class: "thumb",
        "data-run": run.id,
        onclick: () => open(run),
        "aria-label": `${titleOf(run.settings)}, ${run.status}`,
        title: titleOf(run.settings),
        "aria-current": String(run.id === shownRun()),
      },
      image,
      early,
    ),
  );
}

function drawStrip() {
  const shown = [
    state.runs.map(({ id, status, seconds }) => [id, status, seconds]),
    shownRun(),
    state.pictures.length,
  ];
  if (same(shown, drawn)) return;
  drawn = shown;
  const focus = document.activeElement?.dataset.run;
  find("strip").replaceChildren(
    ...(state.runs.length
      ? state.runs.map(card)
      : [el("li", { class: "muted" }, "Nothing painted yet.")]),
  );
  if (focus) find("strip").querySelector(`[data-run="${focus}"]`)?.focus();
}

export function startStrip() {
  on("runs view job pictures", drawStrip);
  drawStrip();
}
