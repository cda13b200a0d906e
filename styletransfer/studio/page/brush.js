// The brush: regions and protection are painted on the picture with a mouse, a finger or keys; and
// its bar, which says what it is dipped in, how large it is, and what can be done at once.
import { button, clicked, debounced, el, find, press, refill, say } from "./dom.js";
import { slider, within } from "./dom.js";
import { load, raster, REGIONS, regionStyles, save } from "./layers.js";
import { lend, placed } from "./stage.js";
import { change, list, on, pictureName, show, state, subject, value } from "./store.js";

// `size` is a share of the picture's width.
const hand = { key: "content_regions", number: 1, erase: false, size: 0.12 };
const bar = {}; // its elements by name
const overlay = find("overlay");
let last = null; // where the stroke is, from 0 to 1
let at = { u: 0.5, v: 0.5 }; // where the keyboard's or the pointer's brush is
const saved = { content_regions: debounced(save, 400), protect: debounced(save, 400) };

const open = () => !overlay.hidden;
const covering = () => (hand.key === "protect" ? 255 : hand.number);

function redraw(box) {
  const { width, height } = raster(hand.key);
  const fits = overlay.width === width && overlay.height === height;
  if (!fits) Object.assign(overlay, { width, height });
  raster(hand.key).draw(overlay.getContext("2d"), box);
}

function stroke(from, to) {
  const made = raster(hand.key);
  const pixel = ({ u, v }) => ({ x: u * made.width, y: v * made.height });
  const radius = (hand.size * made.width) / 2;
  redraw(made.stroke(pixel(from), pixel(to), radius, hand.erase ? 0 : covering()));
}

function finish() {
  drawBar();
  saved[hand.key](hand.key);
}

/** Do something to the whole raster: clear, fill, invert, undo. */
function whole(action) {
  action(raster(hand.key));
  redraw();
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
  drawBar();
  ring();
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The keyboard's brush: arrows carry it, space sets it down, brackets change its size. */
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
    if (last) undo();
    last = null;
  },
};

/** Take up the brush, for regions or for protection. */
async function take(wanted = hand.key) {
  hand.key = wanted;
  if (state.view && !subject()) show(null);
  await reload();
  setOpen(true);
}

function setOpen(wanted) {
  overlay.hidden = find("brushes").hidden = !wanted;
  if (!wanted) find("cursor").hidden = true;
  press(find("brush"), wanted);
  lend(wanted ? holder : null);
}

async function reload() {
  await load(hand.key);
  redraw();
  drawBar();
}

/** Another content has no regions yet; other styles may leave regions without theirs. */
async function follow({ keys, by }) {
  if (by === "person" && keys.includes("content"))
    change({ content_regions: null, region_styles: {}, protect: null });
  else if (by === "person" && keys.includes("style") && value("content_regions")) {
    await load("content_regions");
    change({ region_styles: regionStyles() });
  }
  if (open()) await reload();
}

function dip(how) {
  Object.assign(hand, how);
  drawBar();
}

const segments = (label, buttons) =>
  el("div.segments", { role: "group", "aria-label": label }, buttons);

function buildBar() {
  bar.targets = [
    button("Regions", () => take("content_regions")),
    button("Protect", () => take("protect")),
  ];
  bar.tools = [
    button("Draw", () => dip({ erase: false })),
    button("Erase", () => dip({ erase: true })),
  ];
  bar.regions = el("div.regions", { role: "group", "aria-label": "Region" });
  const range = { min: 1, max: 50, step: 1 };
  bar.size = slider("Size of the brush", range, (percent) => resize(percent / 100));
  bar.undo = button("Undo", undo);
  find("brushes").append(
    segments("What is drawn", bar.targets),
    bar.regions,
    segments("Draw or erase", bar.tools),
    el("label.size", "Size", bar.size),
    bar.undo,
    button("Fill", () => whole((made) => made.fill(covering()))),
    button("Clear", () => whole((made) => made.fill(0))),
  );
}

function styleOf(number, text) {
  const styles = list(value("style"));
  if (styles.length < 2 || !raster("content_regions").present.includes(number)) return null;
  const name = REGIONS[number][0];
  const chosen = regionStyles()[name];
  const options = styles.map((style, at) => {
    const properties = { value: at + 1, selected: chosen === at + 1 };
    return el("option", properties, `${at + 1} ${pictureName(style)}`);
  });
  const onchange = ({ target }) =>
    change({ region_styles: regionStyles({ [name]: Number(target.value) }) });
  const label = { "aria-label": `Style of ${text.toLowerCase()}`, "data-focus": name };
  return el("select", { ...label, onchange }, options);
}

function region(number) {
  const swatch = el("i.dab");
  swatch.style.background = `rgb(${REGIONS[number][1].join(" ")})`;
  const text = number === 0 ? "The rest" : `Region ${number}`;
  if (!number) return el("div.region", el("span.pick", swatch, text), styleOf(number, text));
  const dipped = () => dip({ number, erase: false });
  const pick = button([swatch, text], dipped, { class: "pick", "data-focus": number });
  press(pick, hand.number === number);
  return el("div.region", pick, styleOf(number, text));
}

function drawBar() {
  const protect = hand.key === "protect";
  bar.targets.forEach((target, at) => press(target, protect === (at === 1)));
  bar.tools.forEach((tool, at) => press(tool, hand.erase === (at === 1)));
  bar.size.value = 100 * hand.size;
  bar.undo.setAttribute("aria-disabled", String(!raster(hand.key)?.past.length));
  bar.regions.hidden = protect;
  if (!protect) refill(bar.regions, REGIONS.map((_, number) => region(number)));
}

export function startBrush() {
  buildBar();
  clicked({ brush: () => (open() ? setOpen(false) : take()) });
  on("brush", (wanted) => {
    take(wanted);
    find("stage").scrollIntoView({ block: "nearest" });
    find("stage").focus({ preventScroll: true });
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open()) setOpen(false);
  });
  on("moved", ring);
  on("settings", follow);
}
