// The settings: six controls at first, the others in groups behind "More".
import { button, el, find } from "./dom.js";
import { makeField } from "./fields.js";
import { makePicker } from "./picker.js";
import { active, change, fallback, on, same, state, value } from "./store.js";

const PICTURES = ["picture", "pictures"];
const BRUSHED = ["regions", "mask"];
const fields = new Map(); // key -> { row, field, ... }
// What the brush sets together has one place for its errors.
const home = (key) => (key === "region_styles" ? "content_regions" : key);

function brushed({ key, label }) {
  const note = el("span", { class: "muted" });
  const open = button(`Brush ${label.toLowerCase()}`, () =>
    find("brush").dispatchEvent(new CustomEvent("open", { detail: key })),
  );
  const refresh = (given) => {
    note.textContent = given ? "brushed" : "none";
  };
  return { element: el("div", { class: "under" }, open, note), refresh };
}

function show(default_) {
  if (default_ === null || typeof default_ === "object") return "the default";
  return String(default_).replaceAll("_", " ");
}

function row(control) {
  const id = `control-${control.key}`;
  const make = PICTURES.includes(control.kind)
    ? makePicker
    : BRUSHED.includes(control.kind)
      ? brushed
      : makeField;
  const field = make(control, id);
  const grouped =
    !field.element.matches("input, select") &&
    !field.element.querySelector(`[id="${id}"]:is(input, select)`);
  const name = grouped
    ? el("span", { class: "name" }, control.label)
    : el("label", { class: "name", for: id }, control.label);
  const help = el("p", { class: "help", id: `${id}-help`, hidden: true }, control.help);
  const about = button(
    "?",
    () => {
      help.hidden = !help.hidden;
      about.setAttribute("aria-expanded", String(!help.hidden));
    },
    {
      class: "about",
      "aria-label": `About ${control.label}`,
      "aria-expanded": "false",
      "aria-controls": help.id,
    },
  );
  const reset = button("Reset", () => change({ [control.key]: fallback(control.key) }), {
    class: "reset",
    hidden: true,
    "aria-label": `Reset ${control.label} to ${show(control.default)}`,
    title: `Reset to ${show(control.default)}`,
  });
  const error = el("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
  const heading = el(
    "div",
    { class: "heading" },
    name,
    about,
    el(
      "span",
      { class: "live", hidden: true, title: "acts on the picture that is being painted" },
      " acts at once",
    ),
    reset,
  );
  const element = el(
    "div",
    { class: `control ${control.kind}`, "data-control": control.key },
    heading,
    field.element,
    help,
    error,
  );
  fields.set(control.key, { control, element, field, reset, error });
  return element;
}

function refresh(keys) {
  for (const key of keys) {
    const made = fields.get(key);
    if (!made) continue;
    made.field.refresh(value(key));
    made.reset.hidden = same(value(key), fallback(key));
    clearError(key);
  }
  find("reset-all")?.toggleAttribute("hidden", !Object.keys(state.settings).length);
}

/** Take back what was said beside a control. */
export function clearError(key) {
  const made = fields.get(home(key));
  if (!made || made.error.hidden) return;
  made.error.hidden = true;
  made.element.classList.remove("wrong");
  for (const input of made.element.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
}

/** Show an error beside its control, unfolding the group it is in; false if there is none. */
export function showError(key, text) {
  const made = fields.get(home(key));
  if (!made) return false;
  made.element.closest("details:not([open])")?.setAttribute("open", "");
  find("more").open ||= Boolean(made.element.closest("#more"));
  made.error.textContent = text;
  made.error.hidden = false;
  made.element.classList.add("wrong");
  for (const input of made.element.querySelectorAll("input:not([type=file]), select")) {
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", made.error.id);
  }
  return true;
}

function presets() {
  const { experiments } = state.form;
  if (!experiments.length) return null;
  return el(
    "div",
    { class: "control" },
    el("div", { class: "heading" }, el("span", { class: "name" }, "Presets")),
    el(
      "div",
      { class: "presets" },
      ...experiments.map((one) =>
        button(one.name.replaceAll("_", " "), () => change(one.values), { title: one.help }),
      ),
    ),
  );
}

function group({ name, title, controls }) {
  return el(
    "details",
    { class: "group", "data-group": name },
    el("summary", {}, title),
    ...(name === "look" ? [presets()] : []).filter(Boolean),
    ...controls.filter(({ key }) => key !== "region_styles").map(row),
  );
}

function markLive() {
  const running = active();
  for (const { control, element } of fields.values())
    element.querySelector(".live").hidden = !(running && control.steerable);
}

export function buildForm() {
  const [first, ...others] = state.form.groups;
  const more = el(
    "details",
    { class: "more", id: "more" },
    el("summary", {}, "More"),
    ...others.map(group),
  );
  const all = button(
    "Reset everything",
    () =>
      change(
        Object.fromEntries([...fields.keys(), "region_styles"].map((key) => [key, fallback(key)])),
      ),
    { id: "reset-all", hidden: true },
  );
  find("form").replaceChildren(...first.controls.map(row), more, all);
  find("form").addEventListener("submit", (event) => event.preventDefault());
  refresh(state.controls.keys());
  on("settings", ({ keys }) => refresh(keys));
  on("job", markLive);
}
