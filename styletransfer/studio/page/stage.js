// The stage: a picture that can be zoomed to the pixel and moved. Its own size never depends on
// what it shows, but for the aspect ratio of the content on narrow pages.
import { find } from "./dom.js";

const stage = find("stage");
const planes = [...document.querySelectorAll(".plane")];
const LARGEST = 32; // device pixels to one of the picture

let size = { width: 3, height: 2 }; // of the picture, in its own pixels
let view = { scale: 1, x: 0, y: 0 }; // CSS pixels to one of the picture; where its corner is
let fitted = true;
const watchers = [];

/** Call `action()` whenever the picture has moved. */
export const onMove = (action) => watchers.push(action);

function fittingScale() {
  return Math.min(stage.clientWidth / size.width, stage.clientHeight / size.height);
}

/** Keep the picture in sight: centred where the stage is larger, without gaps where it is not. */
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
  find("fit").setAttribute("aria-pressed", String(fitted));
  find("one").setAttribute("aria-pressed", String(!fitted && Math.abs(dense - 1) < 0.01));
  for (const watcher of watchers) watcher();
}

/** Say how large the picture is; the same place stays in sight where the aspect ratio stays. */
export function setSize(width, height) {
  if (size.width === width && size.height === height) return;
  if (!fitted) {
    view.scale *= size.width / width;
    fitted = Math.abs(size.width * height - size.height * width) > Math.max(width, size.width);
  }
  size = { width, height };
  find("stage").style.setProperty("--aspect", width / height);
  draw();
}

export function fit() {
  fitted = true;
  draw();
}

/** Zoom so that the place under (x, y), in CSS pixels of the stage, stays where it is. */
function zoomTo(scale, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const least = Math.min(fittingScale(), 1 / devicePixelRatio);
  const next = Math.min(LARGEST / devicePixelRatio, Math.max(least, scale));
  fitted = next <= fittingScale() * 1.001 && next >= fittingScale() * 0.999;
  view.x = x - ((x - view.x) * next) / view.scale;
  view.y = y - ((y - view.y) * next) / view.scale;
  view.scale = next;
  draw();
}

export const zoomBy = (factor, x, y) => zoomTo(view.scale * factor, x, y);
export const pixelByPixel = () => zoomTo(1 / devicePixelRatio);

export function moveBy(x, y) {
  view.x += x;
  view.y += y;
  draw();
}

/** Return where a pointer is: on the stage in CSS pixels, and on the picture from 0 to 1. */
export function place(event) {
  const box = stage.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  return {
    x,
    y,
    u: (x - view.x) / (view.scale * size.width),
    v: (y - view.y) / (view.scale * size.height),
  };
}

/** Return where a place of the picture is on the stage, and how wide the picture is there. */
export const placed = (u, v) => ({
  x: view.x + u * size.width * view.scale,
  y: view.y + v * size.height * view.scale,
  width: size.width * view.scale,
});

export function startStage() {
  find("fit").addEventListener("click", fit);
  find("one").addEventListener("click", pixelByPixel);
  find("in").addEventListener("click", () => zoomBy(1.5));
  find("out").addEventListener("click", () => zoomBy(1 / 1.5));
  new ResizeObserver(draw).observe(stage);
}
