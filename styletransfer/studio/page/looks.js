// Looks: what Paint would come to, as small pictures of this very photograph, which are painted one
// by one while nothing else is; a tap chooses one.
import { button, debounced, el, find, press } from "./dom.js";
import { active, change, fallback, on, same, state } from "./store.js";

export const LOOKS = ["painted", "faithful", "painterly", "bold"];
// Left out of a sketch.
const FREE = ["size", "scales", "content_regions", "region_styles", "protect"];
let tiles = []; // { element, image, sketched: its settings }
let round = 0; // an older one ends

/** Settings in which some keys have other values, and defaults are left out. */
function withValues(values) {
  const all = { ...state.settings, ...values };
  return Object.fromEntries(Object.entries(all).filter(([key, one]) => !same(one, fallback(key))));
}

/** The looks, of which each puts back what another one sets. */
function looks() {
  const known = state.form.experiments.filter(({ name }) => LOOKS.includes(name));
  known.sort((one, other) => LOOKS.indexOf(one.name) - LOOKS.indexOf(other.name));
  const keys = known.flatMap(({ values }) => Object.keys(values));
  const back = Object.fromEntries(keys.map((key) => [key, fallback(key)]));
  return known.map(({ name, values, help }) => ({ name, help, values: { ...back, ...values } }));
}

function tile({ name, help, values }) {
  const settings = withValues(values);
  const image = el("img", { alt: "", hidden: true });
  const choose = () => change(values);
  const element = button([image, el("span", name)], choose, { class: "look", title: help });
  press(element, same(settings, withValues({})));
  const sketched = { ...settings };
  for (const key of FREE) delete sketched[key];
  return { element, image, sketched };
}

/** Paint those that are not there yet, one after the other. */
async function paint() {
  const mine = ++round;
  for (const { image, sketched } of tiles) {
    if (active() || mine !== round) return;
    if (image.src) continue;
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ settings: sketched });
    const answer = await fetch("/api/sketch", { method: "POST", headers, body }).catch(() => null);
    if (!answer?.ok || mine !== round) continue;
    image.src = URL.createObjectURL(await answer.blob());
    image.hidden = false;
  }
}

const soon = debounced(paint, 300);

function draw() {
  const before = tiles;
  tiles = looks().map(tile);
  for (const { image, sketched } of tiles) {
    const known = before.find((one) => same(one.sketched, sketched) && one.image.src);
    if (known) [image.src, image.hidden] = [known.image.src, false];
  }
  const at = before.findIndex(({ element }) => element === document.activeElement);
  find("looks").replaceChildren(...tiles.map(({ element }) => element));
  tiles[at]?.element.focus();
}

export function startLooks() {
  on("settings pictures", draw);
  on("checked current", () => active() || soon()); // what is seen first comes first
  draw();
}
