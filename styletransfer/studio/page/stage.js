// The stage shows a picture, which the wheel, keys and pointers zoom and move. The stage's own size
// does not depend on the picture, except for the aspect ratio on narrow pages.
import { find, listen, within } from "./dom.js";

const stage = find("stage");
const planes = [...document.querySelectorAll(".plane")];
const LARGEST = 32; // largest number of device pixels for one pixel of the picture

let size = { width: 3, height: 2 }; // of the picture, in its own pixels
let view = { scale: 1, x: 0, y: 0 }; // CSS pixels for one pixel of the picture; its corner
let fitted = true;
let brush = null; // handles one pointer: { begin, move, end, abandon, hover, key, moved }
const pointers = new Map(); // id -> where it is, in CSS pixels of the stage

const fittingScale = () =>
  Math.min(stage.clientWidth / size.width, stage.clientHeight / size.height);

/** Return the picture's offset: centred if the stage is larger, otherwise without a gap. */
function hold(offset, extent, room) {
  return extent <= room ? (room - extent) / 2 : Math.min(0, Math.max(room - extent, offset));
}

function draw() {
  if (fitted) view.scale = fittingScale();
  view.x = hold(view.x, size.width * view.scale, stage.clientWidth);
  view.y = hold(view.y, size.height * view.scale, stage.clientHeight);
  const dense = view.scale * devicePixelRatio;
  for (const plane of planes) {
    plane.style.width = `${size.width}px`;
    plane.style.height = `${size.height}px`;
    plane.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
    plane.classList.toggle("pixels", !fitted && dense >= 2);
  }
  stage.classList.toggle("zoomed", !fitted);
  find("percent").textContent = `${Math.round(100 * dense)} %`;
  find("fit").ariaPressed = fitted;
  find("one").ariaPressed = !fitted && Math.abs(dense - 1) < 0.01;
  brush?.moved();
}

/** Set the picture's size; if the aspect ratio stays, the visible part stays, too. */
export function setSize(width, height) {
  if (size.width === width && size.height === height) return;
  if (!fitted) {
    view.scale *= size.width / width;
    fitted = Math.abs(size.width * height - size.height * width) > Math.max(width, size.width);
  }
  size = { width, height };
  document.body.style.setProperty("--aspect", width / height);
  draw();
}

function fit() {
  fitted = true;
  draw();
}

/** Zoom so that the place under (x, y), in CSS pixels of the stage, stays where it is. */
function zoomTo(scale, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const least = Math.min(fittingScale(), 1 / devicePixelRatio);
  const next = within(least, scale, LARGEST / devicePixelRatio);
  fitted = next <= fittingScale() * 1.001 && next >= fittingScale() * 0.999;
  view.x = x - ((x - view.x) * next) / view.scale;
  view.y = y - ((y - view.y) * next) / view.scale;
  view.scale = next;
  draw();
}

const zoomBy = (factor, x, y) => zoomTo(view.scale * factor, x, y);
const zoomIn = () => zoomBy(1.5);
const zoomOut = () => zoomBy(1 / 1.5);
const pixelByPixel = () => zoomTo(1 / devicePixelRatio);

function moveBy(x, y) {
  view.x += x;
  view.y += y;
  draw();
}

/** Return where a pointer is: on the stage in CSS pixels, and on the picture from 0 to 1. */
export function place(event) {
  const box = stage.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const u = (x - view.x) / (view.scale * size.width);
  const v = (y - view.y) / (view.scale * size.height);
  return { x, y, u, v };
}

/** Return where a place of the picture is on the stage, and how wide the picture is there. */
export const placed = (u, v) => ({
  x: view.x + u * size.width * view.scale,
  y: view.y + v * size.height * view.scale,
  width: size.width * view.scale,
});

/** Let the brush handle one pointer and the keys, until null is given; two pointers still zoom. */
export function lend(holder) {
  brush = holder;
  stage.classList.toggle("brushing", holder !== null);
}

/** Return the middle of two pointers, and how far they are apart. */
function spread() {
  const [one, other] = [...pointers.values()];
  const distance = Math.hypot(one.x - other.x, one.y - other.y);
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2, distance };
}

function down(event) {
  if (event.target.closest(".divider, video")) return;
  stage.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  if (!brush) return;
  if (pointers.size === 1 && event.button === 0) brush.begin(place(event));
  else brush.abandon();
}

function move(event) {
  const before = pointers.get(event.pointerId);
  const now = place(event);
  brush?.hover(now);
  if (!before) return;
  const apart = pointers.size === 2 ? spread() : null;
  pointers.set(event.pointerId, now);
  if (apart) {
    const next = spread();
    moveBy(next.x - apart.x, next.y - apart.y);
    zoomBy(next.distance / Math.max(1, apart.distance), next.x, next.y);
  } else if (brush && event.buttons !== 4) {
    brush.move(event.getCoalescedEvents?.().map(place) ?? [now]);
  } else moveBy(now.x - before.x, now.y - before.y);
}

function up(event) {
  if (pointers.delete(event.pointerId)) brush?.end();
}

/** The wheel zooms; but if the picture fits, it scrolls the page down, and back to the top. */
function wheel(event) {
  if (fitted && !event.ctrlKey && (event.deltaY > 0 || scrollY > 0)) return;
  event.preventDefault();
  const { x, y } = place(event);
  zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), x, y);
}

const KEYS = {
  ...{ "+": zoomIn, "=": zoomIn, "-": zoomOut, 0: fit, 1: pixelByPixel },
  ...{ ArrowLeft: () => moveBy(60, 0), ArrowRight: () => moveBy(-60, 0) },
  ...{ ArrowUp: () => moveBy(0, 60), ArrowDown: () => moveBy(0, -60) },
};

function key(event) {
  if (event.target !== stage) return;
  if (!brush?.key(event)) {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    KEYS[event.key]();
  }
  event.preventDefault();
}

export function startStage() {
  const buttons = { fit, one: pixelByPixel, in: zoomIn, out: zoomOut };
  for (const [id, click] of Object.entries(buttons)) listen(find(id), { click });
  listen(stage, { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up });
  listen(stage, { pointerleave: () => brush?.hover(null), keydown: key });
  stage.addEventListener("wheel", wheel, { passive: false });
  new ResizeObserver(draw).observe(stage);
}
