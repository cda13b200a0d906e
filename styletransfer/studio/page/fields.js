// Controls for numbers, choices and texts. Each is { element, refresh(value) } and names what a
// person enters by change(). `id` belongs to the element that the label stands for.
import { el, track } from "./dom.js";
import { change, fallback, list, on, pictureName, value } from "./store.js";

const NOTCHES = 1000; // places of a slider

/** Return how a control's numbers and places of its slider stand for each other. */
function scaleOf({ min, max, step, log }) {
  const within = (number) => Math.min(max, Math.max(min, number));
  if (!log) {
    const even = (number) => min + Math.round((number - min) / step) * step;
    return {
      place: (number) => (NOTCHES * (within(number) - min)) / (max - min),
      number: (place) => within(Number(even(min + (place / NOTCHES) * (max - min)).toFixed(6))),
    };
  }
  const span = Math.log(max / min);
  const rounded = (number) => Number(number.toPrecision(2));
  return {
    place: (number) => (NOTCHES * Math.log(within(number) / min)) / span,
    number: (place) => within(rounded(min * Math.exp((place / NOTCHES) * span))),
  };
}

const parsed = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));

/** Read one number, or several where a control takes them; null for anything else. */
function entered(text, { kind }) {
  if (kind !== "numbers") return parsed(text);
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(parsed);
  if (numbers.includes(null)) return null;
  return numbers.length === 1 ? numbers[0] : numbers;
}

function slider({ key, label, ...control }) {
  const scale = scaleOf(control);
  const range = { type: "range", min: 0, max: NOTCHES, step: "any", "aria-label": label };
  const element = el("input", {
    ...range,
    oninput: () => change({ [key]: scale.number(Number(element.value)) }),
    onkeydown: (event) => arrow(event, scale, key),
  });
  const home = scale.place(list(control.default)[0] ?? control.min);
  element.style.setProperty("--home", home / NOTCHES);
  const refresh = (number) => {
    if (number === null) return;
    const place = scale.place(number);
    if (document.activeElement !== element || Math.abs(place - element.value) > 4)
      element.value = place;
    track(element, place / NOTCHES);
    element.setAttribute("aria-valuetext", number);
  };
  return { element, refresh };
}

const WAYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 };

/** Arrow keys go to the next number that differs, by 2 % of the way at least. */
function arrow(event, scale, key) {
  const way = WAYS[event.key];
  if (!way) return;
  event.preventDefault();
  const now = list(value(key))[0];
  let place = scale.place(now);
  let next = now;
  while (next === now && place >= 0 && place <= NOTCHES) {
    place += way * 20;
    next = scale.number(place);
  }
  change({ [key]: next });
}

/** A box for one number or several; what is no number is put back on leaving it. */
function number(control, id) {
  const { key, kind } = control;
  const box = el("input.number", {
    id,
    inputmode: "decimal",
    spellcheck: "false",
    placeholder: kind === "numbers" ? "one for each" : null,
    onchange: () => {
      const numbers = entered(box.value, control);
      if (numbers === null) refresh(value(key));
      else change({ [key]: numbers });
    },
  });
  const slide = control.min === null ? null : slider(control);
  const refresh = (numbers) => {
    box.value = list(numbers).join(", ");
    slide?.refresh(list(numbers)[0] ?? null);
  };
  return { element: el("div.slide", slide?.element ?? null, box), refresh };
}

function choice({ key, label, choices }, id) {
  const shown = (word) => word.replaceAll("_", " ");
  if (choices.length > 3 || choices.join("").length > 40) {
    const options = choices.map((word) => el("option", { value: word }, shown(word)));
    const pick = () => change({ [key]: select.value });
    const select = el("select", { id, onchange: pick }, options);
    return { element: select, refresh: (word) => (select.value = word) };
  }
  const inputs = choices.map((word) => {
    const pick = () => change({ [key]: word });
    return el("input.away", { type: "radio", name: key, value: word, onchange: pick });
  });
  const labels = inputs.map((input) => el("label", input, el("span", shown(input.value))));
  const refresh = (word) => inputs.forEach((input) => (input.checked = input.value === word));
  const group = { role: "radiogroup", "aria-label": label };
  return { element: el("div.segments", group, labels), refresh };
}

function text({ key }, id) {
  const enter = () => change({ [key]: field.value.trim() || fallback(key) });
  const field = el("input", { id, spellcheck: "false", onchange: enter });
  return { element: field, refresh: (words) => (field.value = words ?? "") };
}

/** One slider for the share of each chosen style. */
function shares({ key }, id) {
  const element = el("div.shares", { id, role: "group" });
  const enter = () => {
    const inputs = [...element.querySelectorAll("input")];
    for (const input of inputs) track(input, input.value / 100);
    change({ [key]: inputs.map((input) => Number(input.value) / 100) });
  };
  const share = (style, place) => {
    const percent = 100 * (list(value(key))[place] ?? 1);
    const name = { "aria-label": `Share of ${pictureName(style)}` };
    const range = { type: "range", min: 0, max: 100, step: 1, value: percent };
    const input = el("input", { ...range, ...name, oninput: enter });
    track(input, percent / 100);
    return el("label", el("span", `${place + 1} ${pictureName(style)}`), input);
  };
  const draw = () => {
    const styles = list(value("style"));
    const none = el("p.muted", "For two styles or more.");
    element.replaceChildren(...(styles.length < 2 ? [none] : styles.map(share)));
  };
  on("settings", ({ keys, by }) => {
    if (!keys.includes("style")) return;
    if (by === "person" && value(key)?.length) change({ [key]: [] });
    draw();
  });
  return { element, refresh: () => element.contains(document.activeElement) || draw() };
}

const MAKERS = { number, integer: number, numbers: number, choice, text };

export const makeField = (control, id) =>
  control.key === "style_weights" ? shares(control, id) : MAKERS[control.kind](control, id);
