// Pictures are chosen from tiles; files can be added by a button, dropped or pasted.
import { brushIsOpen, dip } from "./brush.js";
import { busy, Button, debounced, Files, find, listen, say, Slider, Sure, Thumbnail } from "./dom.js";
import { remember } from "./history.js";
import { palette } from "./layers.js";
import { html, useLayoutEffect, useRef, useState } from "./preact.js";
import { active, change, changed, discard, drawnFor, fail, isFilm, isPair, list, on } from "./store.js";
import { picture, pictureName, pictureUrl, prepare, show, sketchUrl, state } from "./store.js";
import { upload, value } from "./store.js";
import { addFrames } from "./strip.js";

let asked = ""; // settings, as JSON, for which sketches are being made
const seen = new Set(); // ids of the styles whose tiles have come into view
const watch = new IntersectionObserver((tiles) => {
  for (const { isIntersecting, target } of tiles)
    if (isIntersecting) changed(seen.add(target.dataset.style));
});

/** What a picker offers: uploads for it, the newest first, then the bundled pictures of its kind. */
function offered(key) {
  const purposes = key === "style_source" ? [key, "content"] : [key];
  const isFor = ({ kind, purpose, frames }) =>
    !(frames && key !== "content") && purposes.includes(kind === "upload" ? purpose || key : kind);
  const chosen = list(value(key));
  const all = state.pictures.filter((one) => chosen.includes(one.id) || isFor(one));
  const isAdded = ({ kind }) => kind === "upload";
  return [...all.filter(isAdded).reverse(), ...all.filter((one) => !isAdded(one))];
}

/** Upload files one by one, with a tile for each at once; return the pictures, and the errors. */
export async function send(files, key) {
  const [added, refused] = [new Map(), []];
  const waiting = [...files].map((file) =>
    ({ key, name: file.name, url: URL.createObjectURL(file), share: 0, file }));
  changed(state.uploads.push(...waiting));
  for (const one of waiting) {
    say(`Reading ${one.name}`);
    const progress = (share) => changed((one.share = share));
    try {
      const taken = await busy(find("stage"), upload(one.name, one.file, key, progress));
      added.set(taken.id, { ...taken, sent: one.name }); // the server keeps its first name
    } catch (refusal) {
      refused.push(refusal);
    }
    state.uploads = state.uploads.filter((other) => other !== one);
    URL.revokeObjectURL(one.url);
    changed();
  }
  return { added, refused };
}

/** Take over the settings that a pastiche carries, for the next run. */
function recall({ name, recipe: { settings, lost } }) {
  remember();
  prepare({ content: value("content"), style: value("style"), ...settings });
  show(null);
  const labels = lost.map((key) => state.controls.get(key)?.label ?? key).join(", ");
  say(`The settings of ${name} are back.`);
  if (labels) fail({ message: `The settings of ${name} are back, except: ${labels}.` });
}

/** Upload files for a key and choose them, in addition to several chosen styles, else instead of
 * the chosen picture. A pastiche that is dropped as a photograph restores its settings instead.
 * Return whether all files could be added. */
async function addFiles(files, key, isDropped = false) {
  if (key === "style_source" && isFilm()) return addFrames(files);
  if (key === "content" && files.length > 1) {
    const isAdded = await addFiles([files[0]], "content", isDropped);
    return (await addFiles([...files].slice(1), "style")) && isAdded;
  }
  const several = state.controls.get(key).kind === "pictures";
  const { added, refused } = await send(several ? files : [files[0]], key);
  const [first] = added.values();
  if (isDropped && key === "content" && first?.recipe) {
    recall(first);
    return true;
  }
  const ids = [...added.keys()];
  const before = list(value(key));
  const mixed = before.length > 1 ? [...new Set([...before, ...ids])] : ids;
  if (ids.length && several) change({ style: mixed, style_weights: [] });
  else if (ids.length) change({ [key]: ids[0] });
  refused.forEach((refusal) => fail(refusal, key));
  return !refused.length;
}

let adding = true; // whether all files of the last addition could be added, or its promise

/** Add files, see `addFiles`; an addition that goes on and this one count as one. */
function add(...parts) {
  const before = state.uploads.length ? adding : true;
  adding = Promise.all([before, addFiles(...parts)]).then((all) => all.every(Boolean));
  return adding;
}

/** Wait for files that are being sent; return false if one of them was refused. */
export const filesAdded = async () => !state.uploads.length || adding;

const isDivided = () => Boolean(drawnFor("content_regions")) && !isFilm();

/** How much of a style is in the mixture, from 0 to 1. */
function shareOf(id) {
  const place = list(value("style")).indexOf(id);
  return place < 0 ? 0 : (list(value("style_weights"))[place] ?? 1);
}

/** Set the share of a style; do nothing if no style would have a share above 0. */
function mix(id, share) {
  const styles = [...new Set([...list(value("style")), id])];
  const all = styles.map((one) => [one, one === id ? share : shareOf(one)]);
  const some = all.filter(([, part]) => part > 0);
  const parts = some.map(([, part]) => part);
  if (!some.length) return changed();
  const style_weights = parts.every((part) => part === parts[0]) ? [] : parts;
  return change({ style: some.map(([one]) => one), style_weights });
}

function choose(key, id) {
  if (key === "style_source" && value(key) === id) return change({ [key]: null });
  if (key !== "style") return change({ [key]: id });
  if (brushIsOpen()) return dip(id);
  if (isDivided()) return mix(id, Number(!shareOf(id)));
  return change({ style: [id], style_weights: [] });
}

/** Move the focus by arrows among the tiles, of which Tab reaches one. */
function walk(event) {
  const all = [...event.currentTarget.querySelectorAll(".tile button")];
  const row = all.filter((one) => one.offsetTop === all[0].offsetTop).length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row }[event.key];
  if (!step || !all.includes(event.target)) return;
  event.preventDefault();
  all[all.indexOf(event.target) + step]?.focus();
}

/** A thumbnail with its name; for a style, also a sketch of the photograph, and a slider. */
function Tile({ id, name, origin, place, tabindex }) {
  const [key, label] = place;
  const isStyle = key === "style";
  const isChosen = (isStyle ? palette() : list(value(key))).includes(id);
  const sketch = isStyle && sketchOf(id, tileUrl(id));
  return html`<div class="tile" title=${origin || name} data-id=${id}>
    <${Button} tabindex=${tabindex} pressed=${isChosen} onclick=${() => choose(key, id)}>
      <span class="frame" data-style=${id} ref=${(frame) => isStyle && frame && watch.observe(frame)}
        ><${Thumbnail} src=${pictureUrl(id, 320)} />
      ${sketch && html`<img class="look" alt="" src=${sketch} />`}</span>
      <span class="caption">${label}</span><//>
    ${isStyle && !isDivided() && html`<${Slider} label="Share of ${label}" min=0 max=100 tabindex=${tabindex}
      value=${Math.round(100 * shareOf(id))} enter=${(share) => mix(id, share / 100)} />`}
  </div>`;
}

const Waiting = ({ name, url, share }) => html`<div class="tile waiting" title=${name}>
  <span class="frame"><img src=${url} alt="" /></span><span class="caption">${name}</span>
  <progress value=${share < 1 ? share : null} aria-label="Reading ${name}"></progress></div>`;

const tileUrl = (id) => sketchUrl({ content: value("content"), style: [id] }, 256);

/** The address of a small picture if it is there; null while an older one is, as of another
 * photograph. */
export const sketchOf = (name, url) => (state.sketches.get(name) === url ? url : null);

/** The address of a small pastiche in a look, with the panel's photograph and styles. */
export function trialUrl({ values }) {
  const wanted = { content: value("content"), style: value("style"), ...values };
  return `/api/look?${new URLSearchParams({ settings: JSON.stringify(wanted), trial: 1 })}`;
}

/** Show the photograph in each style in view, then in each look, one after the other. */
const sketchTiles = debounced(async (mine) => {
  const tiles = [...seen].filter(picture).map((id) => [id, tileUrl(id)]);
  const looks = isFilm() || isPair() ? [] : state.form.looks.map((look) => [look.name, trialUrl(look)]);
  for (const [id, url] of [...tiles, ...looks]) {
    if (state.sketches.get(id) === url || (active() && url.includes("trial"))) continue;
    const image = Object.assign(new Image(), { src: url });
    const isThere = await image.decode().then(() => true, () => false);
    if (mine !== asked) return;
    if (isThere) changed(state.sketches.set(id, url)); // else the tile shows the style image
  }
}, 300);

export function Picker({ control: { key, label, kind }, id }) {
  const [wall, counted] = [useRef(), useRef(0)];
  const [reached, reach] = useState(null); // the id of the tile that had the focus last
  const isStyle = key === "style";
  const chosen = list(value(key));
  const accept = key === "content" ? "image/*,video/*" : "image/*";
  const field = { accept, multiple: kind === "pictures", "aria-label": `File for ${label}` };
  const waiting = state.uploads.filter((one) => one.key === key).reverse();
  const all = offered(key);
  const count = waiting.length + all.length; // without strokes of the brush, which are pictures, too
  useLayoutEffect(() => {
    if (count > counted.current) wall.current.scrollTop = 0; // new tiles are at the top
    counted.current = count;
  }, [count]);
  const first = [reached, chosen[0]].find((id) => all.some((one) => one.id === id)) ?? all[0]?.id;
  const tiles = all.map((one) => html`<${Tile} key=${one.id} ...${one}
    place=${[key, pictureName(one.id)]} tabindex=${one.id === first ? 0 : -1} />`);
  const origins = chosen.map((id) => picture(id)?.origin).filter(Boolean);
  const canRemove = chosen.length === 1 && picture(chosen[0])?.kind === "upload";
  return html`<div class="picker" data-picker=${key}>
    <div class="tiles ${isStyle ? "wall" : ""}" id=${id} ref=${wall} role="group" aria-label=${label}
      onkeydown=${walk} onfocusin=${({ target }) => reach(target.closest(".tile").dataset.id)}>
      <div class="tile add"><${Files} enter=${(files) => add(files, key)} field=${field}
        title="Add a file" aria-label="Add a file for ${label}"><span class="frame">+</span>
        <span class="caption">your own</span><//></div>
      ${waiting.map((one) => html`<${Waiting} key=${one.url} ...${one} />`)}${tiles}</div>
    ${origins.map((origin) => html`<p class="muted">${origin}</p>`)}
    ${canRemove && html`<${Sure} text="Remove" action=${() => discard(key)} />`}</div>`;
}

const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

const dragged = (isOver) => document.body.classList.toggle("dragged", isOver);

function over(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  dragged(true);
}

function drop(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  dragged(false);
  const key = event.target.closest?.("[data-picker]")?.dataset.picker ?? "content";
  if (event.dataTransfer.files.length) add(event.dataTransfer.files, key, true);
}

/** A pasted picture goes to the picker that has the focus, or else is the photograph. */
function paste(event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  const picker = document.activeElement?.closest("[data-picker]");
  add(files, picker?.dataset.picker ?? "content", true);
}

export function startPicker() {
  const leave = ({ relatedTarget }) => relatedTarget ?? dragged(false);
  listen(window, { dragenter: over, dragover: over, dragleave: leave, drop, paste });
  on(() => {
    const asks = [value("content"), value("style"), seen.size, active(), state.contacts];
    const now = JSON.stringify(asks);
    if (now !== asked) sketchTiles((asked = now));
  });
}
