// Controls for numbers, choices and shares. Each is { element, refresh(value) } and names what a
// person enters by change(). `id` belongs to the element that the label stands for.
import { el, slider } from "./dom.js";
import { change, list, on, pictureName, value } from "./store.js";

// Plain words for what the config calls otherwise.
const WORDS = {
  content_luminance: "the photograph's",
  content_palette: "near the photograph's",
  gram: "by Gram matrices: the whole manner",
  moments: "by mean and spread: keeps shapes",
  wasserstein: "by colour clouds: boldest",
};

const inWords = (word) =>
  list(word).map((one) => WORDS[one] ?? String(one).replaceAll("_", " ")).join(", ");

const NOTCHES = 200; // places of a slider that is even in the logarithm

/** Return how a control's numbers and places of its slider stand for each other. */
function scaleOf({ min, max, step, log }) {
  if (!log) return { range: { min, max, step }, place: (number) => number, number: Number };
  const span = Math.log(max / min);
  return {
    range: { min: 0, max: NOTCHES, step: 1 },
    place: (number) => (NOTCHES * Math.log(Math.max(min, number) / min)) / span,
    number: (place) => Number((min * Math.exp((place / NOTCHES) * span)).toPrecision(3)),
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

function slide({ key, label, ...control }) {
  const { range, place, number } = scaleOf(control);
  const element = slider(label, range, (at) => change({ [key]: number(at) }));
  const refresh = (one) => {
    if (one === null) return;
    if (number(element.value) !== one) element.value = place(one);
    element.setAttribute("aria-valuetext", one);
  };
  return { element, refresh };
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
  const beside = control.min === null ? null : slide(control);
  const refresh = (numbers) => {
    box.value = list(numbers).join(", ");
    beside?.refresh(list(numbers)[0] ?? null);
  };
  return { element: el("div.slide", beside?.element ?? null, box), refresh };
}

function choice({ key, choices }, id) {
  const options = choices.map((word) => el("option", { value: word }, inWords(word)));
  const pick = () => change({ [key]: select.value });
  const select = el("select", { id, onchange: pick }, options);
  return { element: select, refresh: (word) => (select.value = word) };
}

/** One slider for the share of each chosen style. */
function shares({ key }, id) {
  const element = el("div.shares", { id, role: "group" });
  const enter = () => {
    const shares = [...element.querySelectorAll("input")].map((input) => {
      return Number(input.value) / 100;
    });
    change({ [key]: shares });
  };
  const share = (style, place) => {
    const range = { min: 0, max: 100, step: 1, value: 100 * (list(value(key))[place] ?? 1) };
    const input = slider(`Share of ${pictureName(style)}`, range, enter);
    return el("label", el("span", `${place + 1} ${pictureName(style)}`), input);
  };
  const draw = () => {
    const styles = list(value("style"));
    element.replaceChildren(...styles.map(share));
  };
  on("settings", ({ keys, by }) => {
    if (!keys.includes("style")) return;
    if (by === "person" && value(key)?.length) change({ [key]: [] });
    draw();
  });
  return { element, refresh: () => element.contains(document.activeElement) || draw() };
}

const MAKERS = { number, integer: number, numbers: number, choice };

export const makeField = (control, id) =>
  control.key === "style_weights" ? shares(control, id) : MAKERS[control.kind](control, id);
