// Before and after: the photograph left of a line, the painting right of it.
import { find } from "./dom.js";
import { place } from "./stage.js";

const [before, divider, stage] = [find("before"), find("divider"), find("stage")];
let share = 0.5; // of the stage's width that shows the photograph

function move(to) {
  share = Math.min(1, Math.max(0, to));
  before.style.clipPath = `inset(0 ${100 * (1 - share)}% 0 0)`;
  divider.style.left = `${100 * share}%`;
  divider.setAttribute("aria-valuenow", Math.round(100 * share));
  divider.setAttribute("aria-valuetext", `${Math.round(100 * share)} % photograph`);
}

export function compare(wanted) {
  find("compare").setAttribute("aria-pressed", String(wanted));
  before.hidden = divider.hidden = !wanted;
}

/** Say which picture is the one before. */
export function setOriginal(url) {
  const image = find("original");
  if (image.getAttribute("src") !== url) image.src = url;
}

function key(event) {
  const way = { ArrowLeft: -0.05, ArrowRight: 0.05, Home: -1, End: 1 }[event.key];
  if (!way) return;
  event.preventDefault();
  move(share + way);
}

export function startCompare() {
  find("compare").addEventListener("click", () => compare(before.hidden));
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (divider.hasPointerCapture(event.pointerId)) move(place(event).x / stage.clientWidth);
  });
  divider.addEventListener("keydown", key);
  move(share);
}
