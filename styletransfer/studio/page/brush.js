// The brush: regions and protection are painted on the picture with a mouse, a finger or keys.
import { debounced, el, find, say } from "./dom.js";
import { buildBrushBar } from "./brushbar.js";
import { lend } from "./gestures.js";
import { load, raster, regionStyles, save, seen } from "./layers.js";
import { active, change, on, show, state, value } from "./store.js";
import { onMove, placed, place } from "./stage.js";

/** What the bar sets and the hand uses. `size` is a share of the picture's width. */
export const hand = { key: "content_regions", number: 1, erase: false, size: 0.12 };

const overlay = find("overlay");
let bar;
let last = null; // where the stroke is, from 0 to 1
let at = { u: 0.5, v: 0.5 }; // where the keyboard's or the pointer's brush is
const saved = { content_regions: debounced(save, 400), protect: debounced(save, 400) };

const open = () => !overlay.hidden;
const paintedValue = () => (hand.erase ? 0 : hand.key === "protect" ? 255 : hand.number);

function pixel({ u, v }) {
  const { width, height } = raster(hand.key);
  return { x: u * width, y: v * height };
}

export function redraw(box) {
  const made = raster(hand.key);
  if (overlay.width !== made.width || overlay.height !== made.height) {
    overlay.width = made.width;
    overlay.height = made.height;
  }
  made.draw(overlay.getContext("2d"), seen(hand.key), box);
}

function stroke(from, to) {
  const made = raster(hand.key);
  redraw(made.stroke(pixel(from), pixel(to), (hand.size * made.width) / 2, paintedValue()));
}

function finish() {
  bar.refresh();
  saved[hand.key](hand.key);
}

/** Do something to the whole raster: clear, fill, invert, undo. */
export function whole(action) {
  action(raster(hand.key));
  redraw();
  finish();
}

function hover(to) {
  if (to) at = { u: to.u, v: to.v };
  find("cursor").hidden = to === null;
  ring();
}

function ring() {
  const { x, y, width } = placed(at.u, at.v);
  const cursor = find("cursor");
  cursor.style.width = cursor.style.height = `${hand.size * width}px`;
  cursor.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
}

export function resize(to) {
  hand.size = Math.min(0.5, Math.max(0.01, to));
  bar.refresh();
  ring();
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The keyboard's brush: arrows carry it, space sets it down, brackets change its size. */
function key(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "z") whole((made) => made.undo());
  else if (event.ctrlKey || event.metaKey || event.altKey) return false;
  else if (event.key in STEPS) {
    const way = STEPS[event.key].map((one) => one * (event.shiftKey ? 0.005 : 0.025));
    hover({
      u: Math.min(1, Math.max(0, at.u + way[0])),
      v: Math.min(1, Math.max(0, at.v + way[1])),
    });
  } else if (event.key === " " || event.key === "Enter") {
    raster(hand.key).remember();
    stroke(at, at);
    finish();
    say(hand.erase ? "erased" : "painted");
  } else if (event.key === "[") resize(hand.size / 1.25);
  else if (event.key === "]") resize(hand.size * 1.25);
  else return false;
  return true;
}

const holder = {
  hover,
  key,
  begin(to) {
    raster(hand.key).remember();
    hover(to);
    stroke(to, to);
    last = to;
  },
  move(path) {
    for (const to of last ? path : []) {
      stroke(last, to);
      last = to;
    }
  },
  end() {
    if (last) finish();
    last = null;
  },
  abandon() {
    if (last) whole((made) => made.undo());
    last = null;
  },
};

/** Take up the brush, for regions or for protection. */
export async function take(key_ = hand.key) {
  hand.key = key_;
  if (!active() && state.view !== "content") show("content");
  await load(hand.key);
  overlay.hidden = find("brushes").hidden = false;
  find("brush").setAttribute("aria-pressed", "true");
  redraw();
  bar.refresh();
  lend(holder);
}

function putDown() {
  if (!open()) return;
  overlay.hidden = find("brushes").hidden = find("cursor").hidden = true;
  find("brush").setAttribute("aria-pressed", "false");
  lend(null);
}

/** Another content has no regions yet; other styles may leave regions without theirs. */
async function follow({ keys, by }) {
  if (by === "person" && keys.includes("content"))
    change({ content_regions: null, region_styles: {}, protect: null });
  else if (by === "person" && keys.includes("style") && value("content_regions")) {
    await load("content_regions");
    change({ region_styles: regionStyles() });
  }
  if (!open()) return;
  await load(hand.key);
  redraw();
  bar.refresh();
}

export function startBrush() {
  bar = buildBrushBar({ take, whole, resize });
  find("brush").addEventListener("click", () => (open() ? putDown() : take()));
  find("brush").addEventListener("open", ({ detail }) => {
    take(detail);
    find("stage").scrollIntoView({ block: "nearest" });
    find("stage").focus({ preventScroll: true });
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open()) putDown();
  });
  onMove(ring);
  on("settings", follow);
}
