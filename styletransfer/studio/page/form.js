// The settings: six controls at first, the others in groups behind "More".
import { button, el, find, press, refill, refocus } from "./dom.js";
import { makeField } from "./fields.js";
import { makePicker } from "./picker.js";
import { active, aim, change, emit, fallback, list, on, runOf, same, show } from "./store.js";
import { settings, state, steered, subject, value, values } from "./store.js";

const rows = new Map(); // key -> { control, element, field, reset, error }
// What the brush sets together has one place for its errors.
export const rowOf = (key) => rows.get(key === "region_styles" ? "content_regions" : key);

function brushed({ key, label }) {
  const note = el("span.muted");
  const open = button("Draw", () => emit("brush", key), { "aria-label": `Draw: ${label}` });
  const refresh = (id) => (note.textContent = id ? "drawn" : "none");
  return { element: el("div.under", open, note), refresh };
}

const MAKERS = { picture: makePicker, pictures: makePicker, regions: brushed, mask: brushed };

function helpFor({ label, help }, id) {
  const text = el("p.help", { id: `${id}-help`, hidden: true }, help);
  const toggle = () => {
    text.hidden = !text.hidden;
    about.setAttribute("aria-expanded", String(!text.hidden));
  };
  const about = button("?", toggle, {
    class: "about",
    "aria-label": `About ${label}`,
    "aria-expanded": "false",
    "aria-controls": text.id,
  });
  return { text, about };
}

function row(control) {
  const { key, label, kind } = control;
  const id = `control-${key}`;
  const field = (MAKERS[kind] ?? makeField)(control, id);
  const input = [field.element, ...field.element.children].find((one) => one.id === id);
  const name = input?.matches("input, select")
    ? el("label.name", { for: id }, label)
    : el("span.name", label);
  const { text, about } = helpFor(control, id);
  const back = () => {
    change({ [key]: fallback(key) });
    refocus(element.querySelector("input, select, button"));
  };
  const reset = button("Reset", back, {
    class: "reset",
    hidden: true,
    "aria-label": `Reset ${label}`,
  });
  const hint = { hidden: true, title: "acts on the picture that is being painted" };
  const heading = el("div.heading", name, about, el("span.live", hint, " acts at once"), reset);
  const error = el("p.error", { id: `${id}-error`, role: "alert", hidden: true });
  const place = { "data-control": key };
  const cost = key === "size" ? el("p.muted", { id: "cost" }) : null;
  const element = el(`div.control.${kind}`, place, heading, field.element, cost, text, error);
  rows.set(key, { control, element, field, reset, error });
  return element;
}

function refresh(keys) {
  for (const key of keys) {
    if (!rows.has(key)) continue;
    const { field, reset } = rows.get(key);
    field.refresh(value(key));
    reset.hidden = same(value(key), fallback(key));
  }
  find("reset-all").hidden = same(values(settings()), values({}));
  rows.get("style_weights").element.hidden = list(value("style")).length < 2;
}

/** Show each refusal beside its control, unfolding the group that it is in. */
function drawErrors() {
  for (const made of rows.values()) {
    const text = state.refusals.findLast(({ key }) => rowOf(key) === made)?.error ?? "";
    if (text === made.error.textContent) continue;
    if (text) {
      made.element.closest("details:not([open])")?.setAttribute("open", "");
      find("more").open ||= Boolean(made.element.closest("#more"));
    }
    made.error.textContent = text;
    made.error.hidden = !text;
    made.element.classList.toggle("wrong", Boolean(text));
    for (const input of made.element.querySelectorAll("input:not([type=file]), select")) {
      input.setAttribute("aria-invalid", String(Boolean(text)));
      input.setAttribute("aria-describedby", made.error.id);
    }
  }
}

function group({ title, controls }) {
  const made = controls.filter(({ key }) => key !== "region_styles").map(row);
  const place = { "data-group": title.toLowerCase().split(" ")[0] };
  return el("details.group", place, el("summary", title), made);
}

/** Draw the looks: named sets of settings, each of which puts back what another look sets. */
function drawLooks() {
  const all = state.form.looks;
  const back = all.flatMap(({ values }) => Object.keys(values)).map((key) => [key, fallback(key)]);
  find("look-help").textContent = "";
  const buttons = all.map(({ name, values, help }) => {
    const wanted = { ...Object.fromEntries(back), ...values };
    const isChosen = Object.entries(wanted).every(([key, one]) => same(one, value(key)));
    const look = button(name, () => change(wanted), { title: help, "data-focus": name });
    press(look, isChosen);
    if (isChosen) find("look-help").textContent = help;
    return look;
  });
  refill(find("looks"), buttons);
}

export function buildForm() {
  const [first, ...others] = state.form.groups;
  const reset = () => {
    change(values({}));
    refocus(find("more").firstChild);
  };
  const looks = el("div.heading", el("span.name", { id: "looks-name" }, "Looks"));
  const strip = el("div.segments", { id: "looks", role: "group", "aria-labelledby": "looks-name" });
  const help = el("p.muted", { id: "look-help" });
  const [content, style, shares, ...rest] = first.controls.map(row);
  const aims = [
    button("this picture", () => aim("this")),
    button("the next one", () => (active() ? aim("next") : show(null))),
  ];
  const whose = el("div.heading.whose", { hidden: true }, el("span.name", "Settings of"), aims);
  const drawAims = () => {
    whose.hidden = !runOf(state.view);
    aims.forEach((one, at) => press(one, Boolean(subject()) === (at === 0)));
    for (const { control, element } of rows.values())
      element.querySelector(".live").hidden = !steered() || !control.steerable;
  };
  on("running view runs", drawAims);
  find("form").replaceChildren(
    ...[whose, content, style, shares, el("div.look-box", looks, strip, help), ...rest],
    el("details.more", { id: "more" }, el("summary", "More"), others.map(group)),
    button("Reset everything", reset, { id: "reset-all", hidden: true }),
  );
  find("form").addEventListener("submit", (event) => event.preventDefault());
  refresh(state.controls.keys());
  drawLooks();
  on("settings", drawLooks);
  on("settings", ({ keys }) => refresh(keys));
  on("refusals", drawErrors);
}
