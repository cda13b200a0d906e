// The brush draws regions and protection on the picture, with a mouse, a finger or keys. Its bar
// has controls for what is drawn, for the brush's size, and for fill and clear.
import { Button, Either, find, say, Slider, within } from "./dom.js";
import { drawEasel } from "./easel.js";
import { remember, snapshot } from "./history.js";
import { copied, keep, LAYERS, load, putLayers, raster, REGIONS, regionStyles } from "./layers.js";
import { styleOf } from "./layers.js";
import { html } from "./preact.js";
import { lend, placed } from "./stage.js";
import { change, changed, drawnFor, list, on, onChange, pictureName, show, state } from "./store.js";
import { subject, value } from "./store.js";

// The brush: `number` is the region that it draws, `size` its diameter over the picture's width.
const hand = { key: "content_regions", number: 1, erase: false, size: 0.12 };
const overlay = find("overlay");
// The stroke: the state `before` it, the raster `made`, and its `last` place on the picture, u and v
// from 0 to 1; null if none is drawn.
let drawing = null;
let shown = null; // bytes of the raster on the overlay
let at = { u: 0.5, v: 0.5 }; // position of the brush, which keys or a pointer move

export const brushIsOpen = () => !overlay.hidden;
const styles = () => list(value("style")).slice(0, REGIONS.length);
/** The byte that is drawn: a region for each style, of which the first is also what is not drawn. */
function covering() {
  if (hand.key === "protect") return 255;
  return styles().length > 1 ? Math.min(hand.number, styles().length - 1) : 1;
}

function redraw() {
  const { width, height, bytes } = raster(hand.key);
  Object.assign(overlay, { width, height });
  shown = bytes;
  raster(hand.key).draw(overlay);
  drawEasel();
}

function begin(last) {
  drawing = { before: snapshot(), made: copied(hand.key), last };
}

function stroke(to) {
  const { made, last } = drawing;
  const pixel = ({ u, v }) => ({ x: u * made.width, y: v * made.height });
  const radius = (hand.size * made.width) / 2;
  made.stroke(pixel(last), pixel(to), radius, hand.erase ? 0 : covering());
  drawing.last = to;
}

/** Draw and save what was drawn, unless it is nothing or an undo has taken it away meanwhile. */
function finish() {
  const { made, before } = drawing;
  const { bytes } = before.layers.get(hand.key);
  const isThere = raster(hand.key) === made;
  if (isThere && made.bytes.some((byte, at) => byte !== bytes[at])) {
    remember(before);
    keep(hand.key);
  } else if (isThere) putLayers(before.layers);
  drawing = null;
  redraw();
  changed();
}

function fill(byte) {
  begin(at);
  drawing.made.bytes.fill(byte);
  finish();
}

function hover(to) {
  if (to) at = { u: to.u, v: to.v };
  find("cursor").hidden = to === null;
  ring();
}

function ring() {
  const { x, y, width } = placed(at.u, at.v);
  const { style } = find("cursor");
  style.width = style.height = `${hand.size * width}px`;
  style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
}

function resize(to) {
  hand.size = within(0.01, to, 0.5);
  changed();
  ring();
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Handle a key: arrows move the brush, space draws, brackets change its size. */
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  else if (event.key in STEPS) {
    const [x, y] = STEPS[event.key].map((one) => one * (event.shiftKey ? 0.005 : 0.025));
    hover({ u: within(0, at.u + x, 1), v: within(0, at.v + y, 1) });
  } else if (event.key === " " || event.key === "Enter") {
    begin(at);
    stroke(at);
    finish();
    say(hand.erase ? "erased" : "drawn");
  } else if (event.key === "[") resize(hand.size / 1.25);
  else if (event.key === "]") resize(hand.size * 1.25);
  else return false;
  return true;
}

const holder = {
  hover,
  key,
  moved: ring,
  begin(to) {
    begin(to);
    hover(to);
    holder.move([to]);
  },
  move(path) {
    if (drawing) path.forEach(stroke);
    redraw();
  },
  end() {
    if (drawing) finish();
  },
  abandon() {
    if (drawing && raster(hand.key) === drawing.made) putLayers(drawing.before.layers);
    drawing = null;
    changed();
  },
};

/** Open the brush for a key: content_regions or protect. */
async function take(wanted = hand.key) {
  hand.key = wanted;
  if (state.view && !subject()) show(null);
  await load(hand.key);
  redraw();
  setOpen(true);
}

export function toggleBrush() {
  const isPlain = styles().length < 2 && !drawnFor("content_regions"); // nothing to choose among
  if (brushIsOpen()) setOpen(false);
  else take(isPlain ? "protect" : hand.key);
}

function setOpen(wanted) {
  overlay.hidden = find("brushes").hidden = !wanted;
  if (!wanted) find("cursor").hidden = true;
  lend(wanted ? holder : null);
  changed();
}

/** After a change of styles, choose the regions' styles again: some may be gone. */
async function follow(keys) {
  if (!keys.includes("style") || !drawnFor("content_regions")) return;
  await load("content_regions");
  change({ region_styles: regionStyles() }, false);
}

const hold = (how) => changed(Object.assign(hand, how));

/** Draw with another paint: the photograph, or the style of a region. */
function use(key, number = hand.number) {
  hold({ number, erase: false });
  return take(key);
}

/** Paint with one of the chosen styles. */
export const dip = (id) => use("content_regions",
  Math.max(0, styles().findIndex((_, region) => styles()[styleOf(region) - 1] === id)));

/** A style to paint with. */
function Paint({ number }) {
  const name = pictureName(styles()[styleOf(number) - 1]);
  const swatch = html`<i class="dab" style="background: rgb(${REGIONS[number][1].join(" ")})"></i>`;
  const key = "content_regions";
  const isUsed = hand.key === key && covering() === number;
  return html`<${Button} pressed=${isUsed} onclick=${() => use(key, number)}>${swatch}${name}<//>`;
}

export function Brushes() {
  if (!brushIsOpen()) return null;
  const { key, erase, size } = hand;
  const tools = [
    ["Draw", !erase, () => hold({ erase: false })],
    ["Erase", erase, () => hold({ erase: true })],
  ];
  const several = styles().length > 1;
  const numbers = several ? [...styles().keys()] : drawnFor("content_regions") ? [1] : [];
  return html`<div class="dabs" role="group" aria-label="Paint with">
      ${numbers.map((number) => html`<${Paint} number=${number} />`)}
      <${Button} pressed=${key === "protect"} onclick=${() => use("protect")}>photograph<//></div>
    ${!several && html`<span class="muted">or tap a style</span>`}
    <${Either} label="Draw or erase" pairs=${tools} />
    <label class="size">Width <${Slider} label="Width of the brush" min=1 max=50
      value=${Math.round(100 * size)} enter=${(percent) => resize(percent / 100)} /></label>
    <${Button} onclick=${() => fill(covering())}>Fill all<//>
    <${Button} onclick=${() => fill(0)}>Clear all<//>`;
}

export function startBrush() {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && brushIsOpen()) setOpen(false);
  });
  onChange(follow);
  on(async () => {
    const areNew = await Promise.all(LAYERS.map(load));
    const isSketched = !state.view && !state.isBare; // then the sketch shows what is drawn
    overlay.style.opacity = Number(!isSketched || (hand.key !== "protect" && styles().length < 2));
    if (areNew.some(Boolean) || (brushIsOpen() && raster(hand.key).bytes !== shown)) changed(redraw());
  });
}
