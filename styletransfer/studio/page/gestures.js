// Wheel, keys and pointers on the stage: they zoom and move the picture, or hold the brush.
import { find } from "./dom.js";
import { fit, moveBy, pixelByPixel, place, zoomBy } from "./stage.js";

const stage = find("stage");
const pointers = new Map(); // id -> where it is, in CSS pixels of the stage
let brush = null; // { begin(place), move(place), end(), abandon(), key(event) } while brushing

/** Give one pointer to the brush, or take it back with null; two still zoom and move. */
export function lend(holder) {
  brush = holder;
  stage.classList.toggle("brushing", holder !== null);
}

function spread() {
  const [one, other] = [...pointers.values()];
  return {
    x: (one.x + other.x) / 2,
    y: (one.y + other.y) / 2,
    distance: Math.hypot(one.x - other.x, one.y - other.y),
  };
}

function down(event) {
  if (event.target.closest(".divider")) return;
  stage.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  if (!brush) return;
  if (pointers.size === 1 && event.button === 0) brush.begin(place(event));
  else brush.abandon();
}

function move(event) {
  const before = pointers.get(event.pointerId);
  const now = place(event);
  if (brush) brush.hover(now);
  if (!before) return;
  if (pointers.size === 2) {
    const old = spread();
    pointers.set(event.pointerId, now);
    const next = spread();
    moveBy(next.x - old.x, next.y - old.y);
    zoomBy(next.distance / Math.max(1, old.distance), next.x, next.y);
    return;
  }
  pointers.set(event.pointerId, now);
  if (brush && event.buttons !== 4) brush.move(event.getCoalescedEvents?.().map(place) ?? [now]);
  else moveBy(now.x - before.x, now.y - before.y);
}

function up(event) {
  if (!pointers.delete(event.pointerId) || !brush) return;
  brush.end();
}

/** The wheel zooms; where it would shrink a picture that fits already, the page scrolls. */
function wheel(event) {
  const fits = !stage.classList.contains("zoomed");
  if (fits && !event.ctrlKey && (event.deltaY > 0 || scrollY > 0)) return;
  event.preventDefault();
  const { x, y } = place(event);
  zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), x, y);
}

const KEYS = {
  "+": () => zoomBy(1.5),
  "=": () => zoomBy(1.5),
  "-": () => zoomBy(1 / 1.5),
  0: fit,
  1: pixelByPixel,
  ArrowLeft: () => moveBy(60, 0),
  ArrowRight: () => moveBy(-60, 0),
  ArrowUp: () => moveBy(0, 60),
  ArrowDown: () => moveBy(0, -60),
};

function key(event) {
  if (event.target !== stage) return;
  if (brush?.key(event)) return void event.preventDefault();
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
}

export function startGestures() {
  stage.addEventListener("pointerdown", down);
  stage.addEventListener("pointermove", move);
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", up);
  stage.addEventListener("pointerleave", () => brush?.hover(null));
  stage.addEventListener("wheel", wheel, { passive: false });
  stage.addEventListener("keydown", key);
}
