// The brush draws regions and protection on the picture, with a mouse, a finger or keys. Its bar
// has controls for what is drawn, for the brush's size, and for fill and clear.
import { Button, find, say, Slider, within } from "./dom.js";
import { drawEasel } from "./easel.js";
import { remember, snapshot } from "./history.js";
import { copied, drop, keep, LAYERS, load, palette, putLayers, raster, REGIONS } from "./layers.js";
import { regionOf, regionStyles, settle, styleOf, take } from "./layers.js";
import { html } from "./preact.js";
import { lend, placed } from "./stage.js";
import { change, changed, drawnFor, fail, on, onChange, pictureName } from "./store.js";
import { pictureUrl, show, state, subject, value } from "./store.js";

// The brush: `number` is the region that it draws, `size` its diameter over the picture's width.
const hand = { key: "content_regions", number: 1, erase: false, size: 0.12 };
const overlay = find("overlay");
// The stroke: the state `before` it, the raster `made`, and its `last` place on the picture, u and v
// from 0 to 1; null if none is drawn.
let drawing = null;
let shown = null; // bytes of the raster on the overlay
let at = { u: 0.5, v: 0.5 }; // position of the brush, which keys or a pointer move

export const brushIsOpen = () => !overlay.hidden;
/** The byte that is drawn: a region for each style, of which the first is also what is not drawn. */
function covering() {
  if (hand.key === "protect") return 255;
  return palette().length > 1 ? hand.number : 1;
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
    if (hand.key !== "protect") settle(made);
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
async function open(wanted = hand.key) {
  hand.key = wanted;
  if (state.view && !subject()) show(null);
  await load(hand.key);
  redraw();
  setOpen(true);
}

export function toggleBrush() {
  const isPlain = palette().length < 2 && !drawnFor("content_regions"); // nothing to choose among
  if (brushIsOpen()) setOpen(false);
  else open(isPlain ? "protect" : hand.key);
}

function setOpen(wanted) {
  overlay.hidden = find("brushes").hidden = !wanted;
  if (!wanted) {
    find("cursor").hidden = true;
    holder.abandon(); // Escape takes back the stroke that is being drawn
    hand.number = 1;
    drop();
  }
  lend(wanted ? holder : null);
  changed();
}

/** After a change of styles, choose the regions' styles again: some may be gone. Strokes that are not
 * saved yet choose them once they are. */
async function follow(keys) {
  if (!keys.includes("style") || !drawnFor("content_regions")) return;
  await load("content_regions");
  if (!raster("content_regions").unsaved) change({ region_styles: regionStyles() }, false);
}

const hold = (how) => changed(Object.assign(hand, how));

/** Draw with another paint: the photograph, or the style of a region. */
function use(key, number = hand.number) {
  hold({ number, erase: false });
  return open(key);
}

/** Paint with a style, which need not be chosen yet. */
export function dip(id) {
  const message = `The brush draws with at most ${REGIONS.length} styles; remove some first.`;
  return take(id) ? use("content_regions", regionOf(id)) : fail({ message }, "style");
}

/** A style to paint with: a small picture in the colour of its region, and its name. */
function Paint({ id }) {
  const [, color] = REGIONS[regionOf(id) ?? 0];
  const edge = `border-color: rgb(${color.join(" ")})`;
  const dab = html`<img class="dab" style=${edge} src=${pictureUrl(id, 320)} alt="" />`;
  const isUsed = hand.key === "content_regions" && palette()[styleOf(covering()) - 1] === id;
  return html`<${Button} pressed=${isUsed} onclick=${() => dip(id)}>${dab}${pictureName(id)}<//>`;
}

export function Brushes() {
  if (!brushIsOpen()) return null;
  const { key, erase, size } = hand;
  const several = palette().length > 1;
  const paints = several || drawnFor("content_regions") ? palette() : [];
  return html`<div class="dabs" role="group" aria-label="Paint with">
      ${paints.map((id) => html`<${Paint} key=${id} id=${id} />`)}
      <${Button} pressed=${key === "protect"} onclick=${() => use("protect")}>photograph<//></div>
    ${!several && html`<span class="muted">or tap a style</span>`}
    <${Button} pressed=${erase} onclick=${() => hold({ erase: !erase })}>Erase<//>
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
    overlay.style.opacity = Number(!isSketched || (hand.key !== "protect" && palette().length < 2));
    if (areNew.some(Boolean) || (brushIsOpen() && raster(hand.key).bytes !== shown)) changed(redraw());
  });
}
