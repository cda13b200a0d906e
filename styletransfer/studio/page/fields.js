// Controls for numbers and choices, which pass what the user enters to change().
import { Either, Slider } from "./dom.js";
import { html, useState } from "./preact.js";
import { change, FOUND, isPair, list, picture, value } from "./store.js";

// Value of a setting -> text on the page.
const WORDS = {
  style_palette: "the style's palette",
  style: "the style's",
  content_luminance: "the photograph's",
  content_palette: "near the photograph's",
  gram: "what occurs together: usual",
  moments: "how much of each: keeps shapes",
  wasserstein: "both: boldest",
};

const NOTCHES = 200; // number of steps of a logarithmic slider

/** Return a slider's range, and functions from a number to a place on the slider and back. */
function scaleOf({ min, max, step, log }) {
  if (!log) return { range: { min, max, step }, place: (number) => number, number: Number };
  const span = Math.log(max / min);
  return {
    range: { min: 0, max: NOTCHES, step: 1 },
    place: (number) => Math.round((NOTCHES * Math.log(Math.max(min, number) / min)) / span),
    number: (place) => Number((min * Math.exp((place / NOTCHES) * span)).toPrecision(3)),
  };
}

const parsed = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));

/** Read one number, or several if the control takes several; null for any other text. */
function entered(text, { kind }) {
  if (kind !== "numbers") return parsed(text);
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(parsed);
  if (numbers.includes(null)) return null;
  return numbers.length === 1 ? numbers[0] : numbers;
}

/** A field for one number or several; after another text, the old value comes back. */
function Numbers({ control, id, error }) {
  const { key, kind, label, min, ends } = control;
  const [draft, setDraft] = useState(null); // what is typed and not entered yet
  const numbers = list(value(key));
  const shown = numbers.join(", ");
  const enter = ({ target }) => {
    const wanted = entered(target.value, control);
    setDraft(null);
    if (wanted !== null) change({ [key]: wanted });
  };
  const { range, place, number } = scaleOf(control);
  const slide = html`<${Slider} label=${label} ...${range} value=${place(numbers[0] ?? min)}
    aria-valuetext=${numbers[0]} enter=${(at) => change({ [key]: number(at) })} />`;
  return html`<div class="slide">${min !== null && slide}
    <input class="number" id=${id} inputmode="decimal" spellcheck="false"
      placeholder=${kind === "numbers" ? "one for each" : ""} value=${draft ?? shown}
      data-typed=${draft === null ? undefined : ""} onchange=${enter} ...${wrong(error, id)}
      oninput=${({ target }) => setDraft(target.value === shown ? null : target.value)} />
    </div>${ends.length > 0 && html`<div class="ends muted" aria-hidden="true">${
      ends.map((word) => html`<span>${word}</span>`)}</div>`}`;
}

const wrong = (error, id) => ({
  "aria-invalid": String(Boolean(error)),
  "aria-describedby": `${id}-error`,
});

/** A choice of words. For pairs, there are fewer; the first replaces a missing one. */
function Choice({ control: { key, choices, of_pairs }, id, error }) {
  const words = isPair() && Array.isArray(of_pairs) ? of_pairs : choices;
  const options = words.map((word) => html`<option value=${word}>${
    WORDS[word] ?? word.replaceAll("_", " ")}</option>`);
  const chosen = words.includes(value(key)) ? value(key) : words[0];
  return html`<select id=${id} value=${chosen} ...${wrong(error, id)}
    onchange=${({ target }) => change({ [key]: target.value })}>${options}</select>`;
}

/** The choice between regions that are drawn, if any, and regions that the run finds. */
export function Regions({ control: { key }, id, error }) {
  const isFound = value(key) === FOUND;
  const choose = ({ target }) => change({ [key]: target.value || null, region_styles: {} });
  return html`<select id=${id} value=${isFound ? FOUND : ""} ...${wrong(error, id)} onchange=${choose}>
    <option value="">as you draw them</option>
    <option value=${FOUND}>figure and ground apart</option></select>`;
}

/** Words for three sizes: a quick one, that of a screen, and the photograph's own. */
function Sizes() {
  const { width = 0, height = 0 } = picture(value("content")) ?? {};
  const sides = { Quick: 256, Screen: 1024, "As the photograph": Math.max(width, height) };
  const pairs = Object.entries(sides).map(([word, size]) =>
    [word, value("size") === size, () => size && change({ size })]);
  return html`<${Either} label="Sizes" pairs=${pairs} />`;
}

export const Field = (parts) =>
  html`<${parts.control.kind === "choice" ? Choice : Numbers} ...${parts} />
    ${parts.control.key === "size" && html`<${Sizes} />`}`;
