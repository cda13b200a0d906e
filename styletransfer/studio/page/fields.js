// Controls for numbers, choices and texts. Each is { element, refresh(value) } and names what a
// person enters by change(). `id` belongs to the element that the label stands for.
import { el } from "./dom.js";
import { scaleOf } from "./scale.js";
import { change, fallback, list, on, pictureName, value } from "./store.js";

const parsed = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));

/** Read one number, or several where a control takes them; null for anything else. */
function entered(text, { kind }) {
  if (kind !== "numbers") return parsed(text);
  const found = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(parsed);
  if (found.includes(null)) return null;
  return found.length === 1 ? found[0] : found;
}

/** Enter what was typed on leaving the field or by Enter; what is no number is put back. */
function typed(field, read, refresh) {
  field.addEventListener("change", () => {
    const entered = read();
    if (entered === null) refresh();
    else change(entered);
  });
  return field;
}

function number(control, id) {
  const { key, label } = control;
  const box = el("input", {
    id,
    class: "number",
    inputmode: "decimal",
    spellcheck: "false",
    placeholder: control.kind === "numbers" ? "one for each" : null,
  });
  let slide = () => {};
  const refresh = (given) => {
    box.value = list(given).join(", ");
    slide(list(given)[0] ?? null);
  };
  const read = () => {
    const found = entered(box.value, control);
    return found === null ? null : { [key]: found };
  };
  typed(box, read, () => refresh(value(key)));
  const element = el("div", { class: "slide" });
  if (control.min !== null && control.max !== null) {
    const scale = scaleOf(control);
    const slider = el("input", {
      type: "range",
      min: 0,
      max: 1000,
      step: "any",
      "aria-label": label,
    });
    const home = scale.position(list(control.default)[0] ?? control.min);
    slider.style.setProperty("--home", home / 1000);
    slide = (given) => {
      if (given === null) return;
      if (document.activeElement !== slider || Math.abs(scale.position(given) - slider.value) > 4)
        slider.value = scale.position(given);
      slider.style.setProperty("--at", scale.position(given) / 1000);
      slider.setAttribute("aria-valuetext", given);
    };
    slider.addEventListener("input", () => change({ [key]: scale.value(Number(slider.value)) }));
    slider.addEventListener("keydown", (event) => arrow(event, scale, key));
    element.append(slider);
  }
  element.append(box);
  return { element, refresh };
}

/** Arrow keys go to the next number that differs, by 2 % of the way at least. */
function arrow(event, scale, key) {
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[
    event.key
  ];
  if (!way) return;
  event.preventDefault();
  const now = list(value(key))[0];
  let position = scale.position(now);
  let next = now;
  while (next === now && position >= 0 && position <= 1000)
    next = scale.value((position += way * 20));
  change({ [key]: next });
}

function choice({ key, label, choices }, id) {
  const shown = (one) => String(one).replaceAll("_", " ");
  if (choices.length > 3 || choices.join("").length > 40) {
    const select = el(
      "select",
      { id },
      ...choices.map((one) => el("option", { value: one }, shown(one))),
    );
    select.addEventListener("change", () => change({ [key]: select.value }));
    return { element: select, refresh: (given) => (select.value = given) };
  }
  const inputs = choices.map((one) =>
    el("input", {
      type: "radio",
      name: key,
      value: one,
      class: "away",
      onchange: () => change({ [key]: one }),
    }),
  );
  const element = el(
    "div",
    { class: "segments", role: "radiogroup", "aria-label": label },
    ...inputs.map((input) => el("label", {}, input, el("span", {}, shown(input.value)))),
  );
  return {
    element,
    refresh: (given) => inputs.forEach((input) => (input.checked = input.value === given)),
  };
}

function text({ key }, id) {
  const field = el("input", { id, spellcheck: "false" });
  field.addEventListener("change", () => {
    const kept = field.value.trim();
    change({ [key]: kept === "" ? fallback(key) : kept });
  });
  return { element: field, refresh: (given) => (field.value = given ?? "") };
}

function bool({ key }, id) {
  const box = el("input", { id, type: "checkbox" });
  box.addEventListener("change", () => change({ [key]: box.checked }));
  return { element: box, refresh: (given) => (box.checked = given) };
}

/** One slider for the share of each chosen style. */
function shares({ key }, id) {
  const element = el("div", { id, class: "shares", role: "group" });
  const draw = () => {
    const styles = list(value("style"));
    const given = list(value(key));
    if (styles.length < 2)
      return element.replaceChildren(el("p", { class: "muted" }, "For two styles or more."));
    const inputs = styles.map((style, place) =>
      el("input", {
        type: "range",
        min: 0,
        max: 100,
        step: 1,
        value: 100 * (given[place] ?? 1),
        "aria-label": `Share of ${pictureName(style)}`,
      }),
    );
    const read = () => inputs.map((input) => Number(input.value) / 100);
    for (const input of inputs)
      input.addEventListener("input", () => {
        input.style.setProperty("--at", input.value / 100);
        change({ [key]: read() });
      });
    inputs.forEach((input) => input.style.setProperty("--at", input.value / 100));
    return element.replaceChildren(
      ...inputs.map((input, place) =>
        el("label", {}, el("span", {}, `${place + 1} ${pictureName(styles[place])}`), input),
      ),
    );
  };
  on("settings", ({ keys, by }) => {
    if (!keys.includes("style")) return;
    if (by === "person" && value(key)?.length) change({ [key]: [] });
    draw();
  });
  return { element, refresh: () => element.contains(document.activeElement) || draw() };
}

const MAKERS = { number, integer: number, numbers: number, choice, text, bool };

export const makeField = (control, id) =>
  control.key === "style_weights" ? shares(control, id) : MAKERS[control.kind](control, id);
