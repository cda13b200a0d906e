// What the stage shows: a sketch, the run that is being painted, or a result, which its photograph
// may shine through. For a comparison, the photograph or another result is left of a divider; while
// the picture is held, the photograph alone is seen.
import { brushIsOpen, toggleBrush } from "./brush.js";
import { alone, busy, Button, find, listen, Slider, within } from "./dom.js";
import { preview } from "./live.js";
import { html } from "./preact.js";
import { compose, sketchParts } from "./sketch.js";
import { setSize } from "./stage.js";
import { active, changed, isFilm, on, opacityOf, picture, pictureName, pictureUrl } from "./store.js";
import { runOf, runUrl, scaled, settings, state, titleOf, value } from "./store.js";

const SIDE = 2048; // longer side in pixels of the largest JPEG that the server makes
const HOLD = 250; // milliseconds after which a pointer that has not moved holds the picture
const canvas = find("canvas");
const [before, divider, stage] = [find("before"), find("divider"), find("stage")];
let drawn = null; // name or blob of the picture that was asked for last; others are dropped
let loading = null; // the promise of the images of the picture that was asked for last
let images = new Map(); // address -> image, of what is on the canvas
const failed = new Map(); // name that gave no picture -> its `conditions` then
let composed = null; // name of what is on the canvas; null for a live picture
let skipped = null; // the live picture that was less sharp than the sketch on the canvas
let seen = null; // address of the photograph of the picture on the canvas
let wanted = null; // the sketch that is to be shown: `parts`, `size` and `photo`, as for `load`
let comparing = false;
let held = false; // whether the picture is held
let against = ""; // the id of the result to compare with, or "" for the photograph

/** What may be the cause if a picture cannot be had; once it changes, the page asks again. */
const conditions = () => JSON.stringify([state.contacts, settings(), state.pictures.length]);
const nameOf = (parts) => JSON.stringify(parts.map(({ url, opacity }) => [url, opacity]));
const isVain = (parts) => failed.get(nameOf(parts)) === conditions();

/** Return the image at an address; undefined if it cannot be had. */
async function fetched(url) {
  const image = images.get(url) ?? Object.assign(new Image(), { src: url });
  await image.decode().catch(() => {});
  return image.naturalWidth ? image : undefined;
}

/** Compose parts on the canvas, see sketch.js. Until all have come, the stage shows the old picture
 * in its aspect ratio. Without a `size`, the picture has its own; `photo` is its photograph. */
async function load({ parts, size, photo }) {
  if (isVain(parts)) return;
  const [name, asked] = [nameOf(parts), conditions()];
  if (drawn !== name) loading = busy(stage, Promise.all(parts.map(({ url }) => fetched(url))));
  drawn = name;
  const found = await loading;
  if (drawn !== name) return;
  if (!found.every(Boolean)) {
    failed.set(name, asked);
    drawn = null;
    return;
  }
  images = new Map(parts.map(({ url }, at) => [url, found[at]]));
  if (composed !== name || parts.some(({ mask }) => mask))
    compose(canvas, parts.map((part, at) => ({ ...part, image: found[at] })));
  setSize(...(size ?? [canvas.width, canvas.height]));
  [composed, seen, skipped] = [name, photo, null];
  const isBare = parts.length === 1 && parts[0].url === photo;
  if (state.isBare !== isBare) changed((state.isBare = isBare));
}

const isLive = (run) => active(run) && preview.id === run.id;

/** What `load` takes for the sketch of settings. */
function sketchOf(some) {
  const photo = pictureUrl(value("content", some), SIDE);
  return { parts: sketchParts(some, photo, SIDE), size: planned(some), photo };
}

/** Draw the latest live picture, except over a sharper sketch of its settings; decode one at a time. */
const decode = alone(async () => {
  while (![drawn, skipped].includes(preview.blob) && isLive(runOf(state.view))) {
    const taken = preview.blob;
    const bitmap = await createImageBitmap(taken).catch(() => null); // damaged: wait for the next
    const isSketched = composed === nameOf(sketchOf(settings(state.running)).parts);
    const side = isSketched ? Math.max(canvas.width, canvas.height) : 1;
    const isSharp = Math.max(bitmap?.width, bitmap?.height) >= side;
    if (isSharp && isLive(runOf(state.view))) {
      [drawn, composed, seen] = [taken, null, null];
      setSize(...planned(state.running.settings));
      Object.assign(canvas, { width: bitmap.width, height: bitmap.height });
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
    } else skipped = taken;
    bitmap?.close();
  }
});

/** The [width, height] of the pastiche for settings; [3, 2] without a photograph. */
export function planned(settings) {
  const content = picture(value("content", settings));
  if (!content) return [3, 2];
  const size = within(64, value("size", settings), 65536);
  return scaled(content, size / Math.max(content.width, content.height));
}

/** Load the sketch `wanted`; if others are wanted meanwhile, then load only the last of them. */
const sketch = alone(async () => {
  while (wanted && drawn !== nameOf(wanted.parts) && !isVain(wanted.parts)) {
    await load(wanted);
    if (!drawn && wanted) await load({ ...wanted, parts: [{ url: wanted.photo }] });
  }
});

/** Show the sketch of settings; until it has come, or if there is none, the photograph. */
async function showSketch(some) {
  if (!value("content", some)) return null;
  const { parts, photo } = (wanted = sketchOf(some));
  if (drawn === nameOf(parts)) return load(wanted); // what is drawn may have changed
  if (seen !== photo) await load({ ...wanted, parts: [{ url: photo }] });
  return seen === photo && sketch();
}

/** The address of the photograph of a run, or of the panel's settings. */
function photoOf(run) {
  if (run?.width && !active(run)) return runUrl(run.id, "content", `side=${SIDE}`);
  return pictureUrl(value("content", run?.settings), SIDE);
}

const resultUrl = (run) => runUrl(run.id, "picture", `side=${SIDE}&seconds=${run.seconds}`);

function showRun(run) {
  if (isLive(run)) return decode();
  const ended = ["finished", "stopped"].includes(run.status) && !run.written;
  if (ended) return null; // its picture comes with the list of results
  if (active(run)) return showSketch(settings(run));
  const [photo, opacity] = [photoOf(run), opacityOf(run)];
  const top = run.width || run.is_preview ? [{ url: resultUrl(run), opacity }] : [];
  const parts = opacity < 1 || !top.length ? [{ url: photo }, ...top] : top;
  return load({ parts, size: run.width ? [run.width, run.height] : planned(run.settings), photo });
}

const hasVideo = (run) => run?.kind === "film" && Boolean(run.width);

/** The player of a painted film. */
export function Player() {
  const run = runOf(state.view);
  return hasVideo(run) && html`<video key=${run.id} src=${runUrl(run.id, "film", "")} controls loop
    preload="metadata" aria-label="The film"></video>`;
}

/** Results that can be compared with the picture on the stage: those of its aspect ratio. */
function rivals(run) {
  const [width, height] = run?.width ? [run.width, run.height] : planned(settings(run));
  const isLike = (one) => Math.abs(one.width * height - one.height * width) <= width + height;
  return state.runs.filter((one) => one.width && one.id !== state.view && isLike(one));
}

function drawBefore(run) {
  before.hidden = !(comparing || held) || hasVideo(run); // a film's player must not be covered
  divider.hidden = before.hidden || held;
  divide();
  const rival = !held && rivals(run).find(({ id }) => id === against);
  const url = rival ? resultUrl(rival) : photoOf(run);
  if (find("original").getAttribute("src") !== url) find("original").src = url;
}

/** The buttons above the stage. */
export function Tools() {
  const run = runOf(state.view);
  const others = comparing ? rivals(run) : [];
  const compare = () => changed((comparing = !comparing));
  const pick = ({ target }) => changed((against = target.value));
  const isFaded = run?.width && !active(run) && !hasVideo(run);
  const fade = (share) => changed(Object.assign(state.faded, { id: run.id, share: share / 100 }));
  return html`${isFaded && html`<label class="size" title="How much of the painting is seen over the
      photograph; Save keeps what is seen">Photograph <${Slider} label="Opacity over the photograph"
      id="opacity" min=0 max=100 value=${Math.round(100 * opacityOf(run))} enter=${fade} /> painting</label>`}
    ${!hasVideo(run) && html`<${Button} id="compare" pressed=${comparing}
      onclick=${compare}
      title="Beside the photograph. Hold the picture, or O, to see the photograph alone">Compare<//>
    ${others.length > 0 && html`<select id="against" value=${against} onchange=${pick}
      aria-label="Compare with"><option value="">the photograph</option>
      ${others.map((one) => html`<option value=${one.id}>${titleOf(one)}, ${one.id}</option>`)}
      </select>`}`}
    ${!isFilm() && html`<${Button} id="brush" pressed=${brushIsOpen()} onclick=${toggleBrush}
      title="Paint a part in another style, or keep the photograph there">Brush a part<//>`}`;
}

export function drawEasel() {
  const run = runOf(state.view);
  drawBefore(run);
  const coming = !active() && state.uploads.find(({ key }) => key === "content");
  const title = coming ? coming.name : run ? titleOf(run) : pictureName(value("content"));
  find("title").textContent = find("title").title = title;
  canvas.setAttribute("aria-label", title);
  stage.classList.toggle("sketched", !coming && !run && !held && !state.isBare && composed !== null);
  if (coming || run) wanted = null; // an older sketch, if it comes only now, is not shown
  if (coming) load({ parts: [{ url: coming.url }] });
  else if (run) showRun(run);
  else showSketch(settings());
}

/** Show the photograph left of the divider; all of it while the picture is held. */
function divide() {
  before.style.clipPath = held ? "" : `inset(0 ${100 - divider.value}% 0 0)`;
}

/** Listen to what holds the picture: the key O, or a pointer that rests, unless it draws. */
function startHold() {
  let timer = null;
  const hold = (isHeld) => {
    clearTimeout(timer);
    if (held !== isHeld) changed((held = isHeld));
  };
  const release = () => hold(false);
  const press = ({ target }) => {
    release();
    const isFree = !brushIsOpen() && !target.closest(".divider, video");
    if (isFree) timer = setTimeout(hold, HOLD, true);
  };
  const move = ({ movementX, movementY }) =>
    Math.hypot(movementX, movementY) > 2 && clearTimeout(timer);
  const key = (event) => event.key === "o" && !event.ctrlKey && !event.metaKey && hold(true);
  listen(stage, { pointerdown: press, pointermove: move, pointerup: release, keydown: key });
  listen(stage, { pointercancel: release, keyup: release, blur: release });
}

export function startEasel() {
  listen(divider, { input: divide });
  startHold();
  on(drawEasel);
}
