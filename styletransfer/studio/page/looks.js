// Looks, and variations of what is set, as small pictures of this very photograph, which are
// painted one by one while nothing else is; a tap chooses one.
import { alone, button, clicked, debounced, el, find, press, refill } from "./dom.js";
import { active, change, fallback, list, on, pictureName, same, state, value } from "./store.js";

// Left out of a sketch.
const FREE = ["size", "scales", "content_regions", "region_styles", "protect"];
const sketches = new Map(); // settings as JSON -> address of a picture, "" where there can be none
let tiles = []; // what is seen: { name, help, values, wanted: settings as JSON }
let varied = false;

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

/** What is near to the settings: a control lower and higher, other styles, another seed. */
function variations() {
  const near = (key, ...numbers) =>
    numbers.map((number) => {
      const { label, step } = state.controls.get(key);
      const rounded = Math.max(step, Number(number.toPrecision(2)));
      return { name: `${label} ${rounded}`, values: { [key]: rounded } };
    });
  const [weight, strokes, seed] = ["objective.content_weight", "style_scale", "seed"];
  const others = state.pictures.filter(
    ({ id, kind, purpose }) => [kind, purpose].includes("style") && !list(value("style")).includes(id),
  );
  return [
    ...near(weight, value(weight) / 3, value(weight) * 3),
    ...near(strokes, value(strokes) / 1.6, value(strokes) * 1.6),
    ...(value("init") === "noise" ? near(seed, value(seed) + 1, value(seed) + 2) : []),
    ...others.map(({ id }) => ({ name: pictureName(id).replaceAll("_", " "), values: { style: [id] } })),
  ];
}

function tile({ name, help, values, wanted }, at) {
  const src = sketches.get(wanted) || null;
  const properties = { class: "look", title: help ?? name, "data-focus": at };
  const image = el("img", { src, alt: "", hidden: !src });
  const element = button([image, el("span", name)], () => change(values), properties);
  press(element, same(withValues(values), withValues({})));
  return element;
}

function draw() {
  tiles = (varied ? variations() : looks()).map((one) => {
    const settings = withValues(one.values);
    for (const key of FREE) delete settings[key];
    return { ...one, wanted: JSON.stringify(settings) };
  });
  refill(find("looks"), tiles.map(tile));
  press(find("vary"), varied);
}

/** Paint those that are not there yet, one after the other. */
const paint = alone(async () => {
  const isMissing = ({ wanted }) => !sketches.has(wanted);
  for (let next; !active() && (next = tiles.find(isMissing)); draw()) {
    const body = `{"settings":${next.wanted}}`;
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/api/sketch", { method: "POST", headers, body }).catch(() => null);
    if (!answer || answer.status === 429 || answer.status >= 500) return; // a change asks again
    const picture = answer.ok ? URL.createObjectURL(await answer.blob()) : "";
    sketches.set(next.wanted, picture);
  }
});

export function startLooks() {
  const soon = debounced(paint, 300);
  on("settings pictures", draw);
  on("checked current", soon); // what is seen first comes first
  clicked({ vary: () => ((varied = !varied), draw(), soon()) });
  draw();
}
