// Looks as small pictures of this very photograph, which are
// painted one by one while nothing else is; a tap chooses one.
import { alone, button, debounced, el, find, press, refill } from "./dom.js";
import { active, change, fallback, on, same, state } from "./store.js";

// Left out of a sketch.
const FREE = ["size", "scales", "content_regions", "region_styles", "protect"];
const sketches = new Map(); // settings as JSON -> address of a picture, "" where there can be none
let painted = null; // the settings of the sketch that is being painted, as JSON
let tiles = []; // what is seen: { name, help, values, wanted: settings as JSON }

/** Settings in which some keys have other values, and defaults are left out. */
function withValues(values) {
  const all = Object.entries({ ...state.settings, ...values });
  return Object.fromEntries(all.filter(([key, one]) => !same(one, fallback(key))));
}

/** The looks, of which each puts back what another one sets. */
function looks() {
  const known = state.form.looks;
  const keys = known.flatMap(({ values }) => Object.keys(values));
  const back = Object.fromEntries(keys.map((key) => [key, fallback(key)]));
  return known.map(({ name, values, help }) => ({ name, help, values: { ...back, ...values } }));
}

function tile({ name, help, values, wanted }, at) {
  const src = sketches.get(wanted) || null;
  const properties = { class: "look", title: help ?? name, "data-focus": at };
  if (wanted === painted) properties["aria-busy"] = "true";
  const image = el("img", { src, alt: "", hidden: !src });
  const element = button([image, el("span", name)], () => change(values), properties);
  press(element, same(withValues(values), withValues({})));
  return element;
}

function draw() {
  tiles = looks().map((one) => {
    const settings = withValues(one.values);
    for (const key of FREE) delete settings[key];
    return { ...one, wanted: JSON.stringify(settings) };
  });
  refill(find("looks"), tiles.map(tile));
}

/** Paint those that are not there yet, one after the other. */
const paint = alone(async () => {
  const isMissing = ({ wanted }) => !sketches.has(wanted);
  for (let next; !active() && (next = tiles.find(isMissing)); draw()) {
    const body = `{"settings":${next.wanted}}`;
    const headers = { "Content-Type": "application/json" };
    painted = next.wanted;
    draw();
    const answer = await fetch("/api/sketch", { method: "POST", headers, body }).catch(() => null);
    painted = null;
    if (!answer || answer.status === 429 || answer.status >= 500) return draw(); // a change asks again
    const picture = answer.ok ? URL.createObjectURL(await answer.blob()) : "";
    sketches.set(next.wanted, picture);
  }
});

export function startLooks() {
  const soon = debounced(paint, 300);
  on("settings pictures", draw);
  on("checked current", soon); // what is seen first comes first
  draw();
}
