// One history of what a person does: settings, choices of pictures, and strokes of the brush.
// Buttons and keys undo the latest of these, and do it again.
import { Button, listen, say } from "./dom.js";
import { layers, putLayers, raster, yieldRegion } from "./layers.js";
import { html } from "./preact.js";
import { available, change, prepare, runOf, same, settings, show, state } from "./store.js";
import { steered, subject, values } from "./store.js";

const MOST = 50; // largest number of states that are kept; a drawn layer has up to 1 MB in each
const past = []; // the state before each change, the latest last
const future = []; // the states that were undone, the latest last
let gesture = 0; // number of presses, keys, drops and pastes so far
let recorded = null; // the gesture of the latest state in `past`

/** The present state: the settings of the next run and of the run that is painted, what is drawn,
 * and what is on the stage. */
export function snapshot() {
  const painted = steered() ? { id: state.running.id, settings: settings() } : null;
  return { next: state.next, painted, layers: layers(), view: state.view, aim: state.aim };
}

/** Remember the state before a change. Changes of one gesture, such as all moves of a slider until
 * it is released, are undone together. */
export function remember(before = snapshot()) {
  if (gesture === recorded) return;
  recorded = gesture;
  past.push(before);
  if (past.length > MOST) past.shift();
  future.length = 0;
}

const isPainted = (painted) => painted && steered() && subject().id === painted.id;

/** Whether a state differs from the present one, so that a return to it changes something. */
function isOther({ next, painted, layers: drawn }) {
  const isLike = (one, other) => same(values(one), values(other));
  const isDrawn = ([key, one]) =>
    one.bytes === raster(key).bytes || !(one.unsaved || raster(key).unsaved);
  return !(isLike(available(next), state.next) && [...drawn].every(isDrawn) &&
    (!isPainted(painted) || isLike(painted.settings, settings())));
}

function restore({ next, painted, layers: drawn, view, aim }) {
  putLayers(drawn);
  yieldRegion();
  prepare(available(next));
  show(runOf(view) ? view : null, { target: aim });
  if (isPainted(painted)) change(values(painted.settings), false);
}

/** Return to the latest state of `from` that differs from the present one, which `to` receives. */
function step(from, to, word) {
  while (from.length && !isOther(from.at(-1))) from.pop();
  if (!from.length) return;
  to.push(snapshot());
  restore(from.pop());
  say(word);
}

const undo = () => step(past, future, "Undone");
const redo = () => step(future, past, "Done again");

const isStroke = ({ layers: drawn }) => [...drawn].some(([key, one]) => one.bytes !== raster(key).bytes);

/** The buttons; keys do the same, wherever the focus is. */
export function Steps() {
  const last = past.findLast(isOther);
  return html`
  <${Button} id="undo" title="Ctrl-Z" idle=${!last} onclick=${undo}
    >${last && isStroke(last) ? "Undo stroke" : "Undo"}<//>
  <${Button} id="redo" title="Ctrl-Shift-Z" idle=${!future.some(isOther)} onclick=${redo}>Redo<//>`;
}

/** Handle Ctrl-Z, Ctrl-Shift-Z and Ctrl-Y. In a text field, what is being typed has the browser's
 * own undo; elsewhere, that would change a text field, even one without the focus. */
function press(event) {
  const key = event.key.toLowerCase();
  const isOurs = (event.ctrlKey || event.metaKey) && !event.altKey && ["z", "y"].includes(key);
  if (!isOurs || event.target.closest?.("[data-typed]")) return;
  event.preventDefault();
  if (key === "z" && !event.shiftKey) undo();
  else redo();
}

export function startHistory() {
  const begin = (event) => event.repeat || gesture++;
  for (const kind of ["pointerdown", "click", "keydown", "drop", "paste"])
    addEventListener(kind, begin, true); // before the page handles the event
  listen(window, { keydown: press });
}
