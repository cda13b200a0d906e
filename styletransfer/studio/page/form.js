// The settings: first the controls that act on the sketch, then those that act once it is painted.
import { Button, Either, find, refocus } from "./dom.js";
import { Field, Regions } from "./fields.js";
import { Picker, sketchOf, trialUrl } from "./picker.js";
import { html, useState } from "./preact.js";
import { active, aim, change, isFilm, isPair, list, pictureUrl, runOf } from "./store.js";
import { same, settings, show, state, steered, subject, value, values } from "./store.js";
import { Strip } from "./strip.js";

/** Whether a control has a row; for a film or a pair, only controls that act on it have one. */
const isShown = ({ of_films, of_pairs }) => (of_films || !isFilm()) && (of_pairs || !isPair());

/** The key of the row that shows the errors of a key; null if there is no such row. */
export function placeOf(key) {
  const place = key === "style_weights" ? "style" : key;
  const control = state.controls.get(place);
  return control && isShown(control) && !state.form.hidden.includes(control) ? place : null;
}

const refusalOf = (place) =>
  state.refusals.findLast(({ key }) => placeOf(key) === place)?.error ?? "";

const FIELDS = { picture: Picker, pictures: Picker, regions: Regions };

function Row({ control }) {
  const { key, kind, steerable, help } = control;
  const isStrip = key === "style_source" && isFilm();
  const label = isStrip ? "Frames that you painted" : control.label;
  const [isOpen, setOpen] = useState(false);
  const id = `control-${key}`;
  const error = refusalOf(key);
  const about = { class: "about", "aria-label": `About ${label}`, "aria-controls": `${id}-help` };
  return html`<div class="control ${error && "wrong"}" data-control=${key}>
    <div class="heading">
      ${FIELDS[kind] === Picker // which is no field that can have a <label>
        ? html`<span class="name">${label}</span>`
        : html`<label class="name" for=${id}>${label}</label>`}
      <${Button} ...${about} onclick=${() => setOpen(!isOpen)} aria-expanded=${String(isOpen)}>?<//>
      <span class="live" hidden=${!steered() || !steerable}
        title="Changes the picture that is being painted"> changes it at once</span>
    </div>
    <${isStrip ? Strip : FIELDS[kind] ?? Field} control=${control} id=${id} error=${error} />
    ${key === "style_source" && html`<p class="warning" id="fits" role="status">${state.cost.warning}</p>`}
    <p class="help" id="${id}-help" hidden=${!isOpen}>${help}</p>
    <p class="error" id="${id}-error" role="alert" hidden=${!error}>${error}</p>
  </div>`;
}

/** The number of a look's values that the settings also have. */
const likeness = (look) => Object.entries(look).filter(([key, one]) => same(one, value(key))).length;

/** Looks: named sets of settings. A choice keeps values that differ from the present look. */
function Looks() {
  const [{ looks }, photo] = [state.form, value("content")];
  const most = Math.max(...looks.map((look) => likeness(look.values)));
  const now = looks.find((look) => likeness(look.values) === most);
  const choose = (look) => {
    const isOwn = ([key]) => same(value(key), now.values[key]);
    change(Object.fromEntries(Object.entries(look.values).filter(isOwn)));
  };
  const tiles = looks.map((look) => html`<${Button} class="tile" key=${look.name}
    pressed=${look === now} title=${look.help} onclick=${() => choose(look)}>
    <span class="frame">${photo && html`<img alt=""
      src=${sketchOf(look.name, trialUrl(look)) ?? pictureUrl(photo, 320)} />`}</span>
    <span class="caption">${look.name}</span><//>`);
  return html`<div class="look-box"><h2 id="looks-name">Look of the painting</h2>
    <p class="muted">The sketch does not show it.</p>
    <div class="wall looks" id="looks" role="group" aria-labelledby="looks-name">${tiles}</div>
    <p class="muted" id="look-help">${now.help}</p></div>`;
}

/** Buttons that choose whose settings the panel shows. */
function Whose() {
  const isThis = Boolean(subject());
  const next = () => (active() ? aim("next") : show(null));
  return html`<div class="heading whose" hidden=${!runOf(state.view)}>
    <span class="name">Settings of</span><${Either} label="Settings of" pairs=${[
      ["this picture", isThis, () => aim("this")], ["the next picture", !isThis, next]]} /></div>
    <p id="aim" class="muted" hidden=${!active() || active(subject())}>Changes here are for the
      next picture. The picture that is being painted stays as it is.</p>`;
}

export function Panel() {
  const [now, later] = [state.form.controls, state.form.later];
  const rows = (some) => some.filter(isShown).map((one) => html`<${Row} key=${one.key} control=${one} />`);
  const [content, style, source, ...rest] = rows(now);
  const more = rows(later);
  const reset = async () => {
    change(values({}));
    await null; // until the page is drawn again
    refocus(find("control-size"));
  };
  const own = (isFilm() || list(value("style")).length === 1) && html`
    <${Fold} class="own" title=${
      isFilm() ? "Did you paint frames of it?" : "Did you paint this style from a photograph?"}
      opens=${isPair() || refusalOf("style_source")}>${source}<//>`;
  const painted = more.length > 0 && html`${!isPair() && html`<${Looks} />`}
    <${Fold} class="more" id="more" title="More for the painting" opens=${later.some(({ key }) => refusalOf(key))}>${more}<//>`;
  return html`<${Whose} />${content}${style}${own}${rest}${painted}
    <${Button} id="reset-all" hidden=${same(values(settings()), values({}))} onclick=${reset}
      >Reset everything<//>`;
}

/** A part that can be unfolded; it is open if there is an error in it. */
function Fold({ title, opens, children, ...more }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details open=${isOpen || opens} ...${more}
    ontoggle=${({ target, currentTarget }) => target === currentTarget && setOpen(target.open)}>
    <summary>${title}</summary>${children}</details>`;
}
