// The brush draws regions and protection on the picture, with a mouse, a finger or keys. Its bar
// has controls for what is drawn, for the brush's size, and for undo, fill and clear.
import { Button, Either, find, say, Slider, within } from "./dom.js";
import { keep, load, raster, REGIONS, regionStyles } from "./layers.js";
import { html } from "./preact.js";
import { lend, placed } from "./stage.js";
import { change, changed, list, on, onChange, pictureName, show, state } from "./store.js";
import { subject, value } from "./store.js";

// The brush: `number` is the region that it draws, `size` its diameter over the picture's width.
const hand = { key: "content_regions", number: 1, erase: false, size: 0.12 };
const overlay = find("overlay");
let last = null; // last position of the stroke on the picture, u and v from 0 to 1
let at = { u: 0.5, v: 0.5 }; // position of the brush, which keys or a pointer move

export const brushIsOpen = () => !overlay.hidden;
const covering = () => (hand.key === "protect" ? 255 : hand.number);

function redraw() {
  const { width, height } = raster(hand.key);
  Object.assign(overlay, { width, height });
  raster(hand.key).draw(overlay);
}

function stroke(from, to) {
  const made = raster(hand.key);
  const pixel = ({ u, v }) => ({ x: u * made.width, y: v * made.height });
  const radius = (hand.size * made.width) / 2;
  made.stroke(pixel(from), pixel(to), radius, hand.erase ? 0 : covering());
}

function finish() {
  redraw();
  changed();
  keep(hand.key);
}

/** Change the whole raster (clear, fill or undo), draw it, and save it. */
function whole(action) {
  action(raster(hand.key));
  finish();
}

const undo = () => whole((made) => made.undo());

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

/** Handle a key: arrows move the brush, space draws, brackets change its size, Ctrl+Z undoes. */
function key(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "z") undo();
  else if (event.ctrlKey || event.metaKey || event.altKey) return false;
  else if (event.key in STEPS) {
    const [x, y] = STEPS[event.key].map((one) => one * (event.shiftKey ? 0.005 : 0.025));
    hover({ u: within(0, at.u + x, 1), v: within(0, at.v + y, 1) });
  } else if (event.key === " " || event.key === "Enter") {
    raster(hand.key).remember();
    stroke(at, at);
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
    raster(hand.key).remember();
    hover(to);
    last = to;
    holder.move([to]);
  },
  move(path) {
    for (const to of last ? path : []) {
      stroke(last, to);
      last = to;
    }
    redraw();
  },
  end() {
    if (last) finish();
    last = null;
  },
  abandon() {
    if (last) undo();
    last = null;
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
  if (brushIsOpen()) setOpen(false);
  else take();
}

/** Open the brush for a key; scroll to the stage, and give it the focus. */
export async function openBrush(key) {
  await take(key);
  find("stage").scrollIntoView({ block: "nearest" });
  find("stage").focus({ preventScroll: true });
}

function setOpen(wanted) {
  overlay.hidden = find("brushes").hidden = !wanted;
  if (!wanted) find("cursor").hidden = true;
  lend(wanted ? holder : null);
  changed();
}

/** After a change of styles, choose the regions' styles again: some may be gone. */
async function follow(keys) {
  if (!keys.includes("style") || !value("content_regions")) return;
  await load("content_regions");
  change({ region_styles: regionStyles() });
}

const dip = (how) => changed(Object.assign(hand, how));

function StyleOf({ number, text }) {
  const styles = list(value("style"));
  if (styles.length < 2 || !raster("content_regions").present.includes(number)) return null;
  const name = REGIONS[number][0];
  const options = styles.map((style, at) =>
    html`<option value=${at + 1}>${at + 1} ${pictureName(style)}</option>`);
  const pick = ({ target }) =>
    change({ region_styles: regionStyles({ [name]: Number(target.value) }) });
  return html`<select aria-label="Style of ${text.toLowerCase()}" value=${regionStyles()[name]}
    onchange=${pick}>${options}</select>`;
}

function Region({ number }) {
  const swatch = html`<i class="dab" style="background: rgb(${REGIONS[number][1].join(" ")})"></i>`;
  const text = number === 0 ? "The rest" : `Region ${number}`;
  const dipped = () => dip({ number, erase: false });
  return html`<div class="region">${number
    ? html`<${Button} class="pick" pressed=${hand.number === number} onclick=${dipped}
        >${swatch}${text}<//>`
    : html`<span class="pick">${swatch}${text}</span>`}
    <${StyleOf} number=${number} text=${text} /></div>`;
}

export function Brushes() {
  if (!brushIsOpen()) return null;
  const isProtection = hand.key === "protect";
  const { erase, size } = hand;
  const targets = [
    ["Regions", !isProtection, () => take("content_regions")],
    ["Protect", isProtection, () => take("protect")],
  ];
  const tools = [
    ["Draw", !erase, () => dip({ erase: false })],
    ["Erase", erase, () => dip({ erase: true })],
  ];
  const regions = REGIONS.map((_, number) => html`<${Region} number=${number} />`);
  return html`<${Either} label="What is drawn" pairs=${targets} />
    ${!isProtection && html`<div class="dabs" role="group" aria-label="Region">${regions}</div>`}
    <${Either} label="Draw or erase" pairs=${tools} />
    <label class="size">Size <${Slider} label="Size of the brush" min=1 max=50
      value=${Math.round(100 * size)} enter=${(percent) => resize(percent / 100)} /></label>
    <${Button} idle=${!raster(hand.key)?.past.length} onclick=${undo}>Undo<//>
    <${Button} onclick=${() => whole((made) => made.fill(covering()))}>Fill<//>
    <${Button} onclick=${() => whole((made) => made.fill(0))}>Clear<//>`;
}

export function startBrush() {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && brushIsOpen()) setOpen(false);
  });
  onChange(follow);
  on(async () => brushIsOpen() && (await load(hand.key)) && changed(redraw()));
}
