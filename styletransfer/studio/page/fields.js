// Controls for numbers and choices, which name what a person enters by change().
import { Slider } from "./dom.js";
import { html, useState } from "./preact.js";
import { change, isFilm, isPair, list, value } from "./store.js";

// Plain words for what the config calls otherwise.
const WORDS = {
  style_palette: "the style's palette",
  style: "the style's",
  content_luminance: "the photograph's",
  content_palette: "near the photograph's",
  gram: "by what occurs together: the whole manner",
  moments: "by how much of each: keeps shapes",
  wasserstein: "by both: boldest",
};

const NOTCHES = 200; // places of a slider that is even in the logarithm

/** Return how a control's numbers and places of its slider stand for each other. */
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

/** Read one number, or several where a control takes them; null for anything else. */
function entered(text, { kind }) {
  if (kind !== "numbers") return parsed(text);
  const numbers = text.split(/[\s,;]+/).filter(Boolean).map(parsed);
  if (numbers.includes(null)) return null;
  return numbers.length === 1 ? numbers[0] : numbers;
}

/** A box for one number or several; what is no number is put back on leaving it. */
function Numbers({ control, id, error }) {
  const { key, kind, label, min } = control;
  const [draft, setDraft] = useState(null); // what is typed and not entered yet
  const numbers = list(value(key));
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
      placeholder=${kind === "numbers" ? "one for each" : ""} value=${draft ?? numbers.join(", ")}
      oninput=${({ target }) => setDraft(target.value)} onchange=${enter} ...${wrong(error, id)} />
    </div>`;
}

const wrong = (error, id) => ({
  "aria-invalid": String(Boolean(error)),
  "aria-describedby": `${id}-error`,
});

/** A choice of words; films and pairs have fewer colours, and the first where it is none of them. */
function Choice({ control: { key, choices, of_films, of_pairs }, id, error }) {
  const some = [isFilm() && of_films, isPair() && of_pairs].filter(Array.isArray);
  const words = choices.filter((word) => some.every((few) => few.includes(word)));
  const options = words.map((word) => html`<option value=${word}>${
    WORDS[word] ?? word.replaceAll("_", " ")}</option>`);
  const chosen = words.includes(value(key)) ? value(key) : words[0];
  return html`<select id=${id} value=${chosen} ...${wrong(error, id)}
    onchange=${({ target }) => change({ [key]: target.value })}>${options}</select>`;
}

export const Field = (parts) =>
  html`<${parts.control.kind === "choice" ? Choice : Numbers} ...${parts} />`;
