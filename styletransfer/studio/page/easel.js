// What the stage shows: a sketch, the run that is being painted, or a result. For a comparison, the
// photograph or another result is shown left of a divider.
import { brushIsOpen, toggleBrush } from "./brush.js";
import { alone, busy, Button, find, listen, within } from "./dom.js";
import { preview } from "./live.js";
import { html } from "./preact.js";
import { setSize } from "./stage.js";
import { active, changed, isPair, on, picture, pictureName, pictureUrl, runOf } from "./store.js";
import { runUrl, same, scaled, settings, sketchUrl, state, titleOf, value } from "./store.js";

const SIDE = 2048; // longer side in pixels of the largest JPEG that the server makes
const canvas = find("canvas");
const [before, divider, stage] = [find("before"), find("divider"), find("stage")];
let drawn = null; // address or blob of the picture that was asked for last; others are dropped
let loading = null; // the promise of the picture that was asked for last
const failed = new Map(); // address that gave no picture -> its `conditions` then
let seen = null; // address of the photograph of the picture on the canvas
let wanted = null; // the address of the sketch that is to be shown
let comparing = false;
let against = ""; // the id of the result to compare with, or "" for the photograph

function put(image, width, height) {
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(image, 0, 0);
}

/** What may be the cause if a picture cannot be had; once it changes, the page asks again. */
const conditions = () => JSON.stringify([state.contacts, settings(), state.pictures.length]);
const isVain = (url) => failed.get(url) === conditions();

/** Load a picture; until it has come, the stage shows the old picture in its aspect ratio. Without
 * a width, the picture has its own aspect ratio. */
async function load(url, width, height, original) {
  if (isVain(url)) return;
  if (drawn !== url) loading = busy(stage, fetchInto(url, original));
  drawn = url;
  await loading;
  if (drawn === url && width) setSize(width, height);
}

async function fetchInto(url, original) {
  const [image, asked] = [Object.assign(new Image(), { src: url }), conditions()];
  await image.decode().catch(() => {});
  if (!image.naturalWidth) failed.set(url, asked);
  if (drawn !== url) return;
  if (!image.naturalWidth) return void (drawn = null);
  setSize(image.naturalWidth, image.naturalHeight); // then `load` sets the planned size
  put(image, image.naturalWidth, image.naturalHeight);
  seen = original;
  if (state.isBare !== (url === original)) changed((state.isBare = url === original));
}

const isLive = (run) => active(run) && preview.id === run.id;

/** Draw the latest live picture; decode one at a time. */
const decode = alone(async () => {
  while (drawn !== preview.blob && isLive(runOf(state.view))) {
    const taken = (drawn = preview.blob);
    const bitmap = await createImageBitmap(taken).catch(() => null); // damaged: wait for the next
    if (bitmap && drawn === taken) {
      setSize(...planned(state.running.settings));
      put(bitmap, bitmap.width, bitmap.height);
      seen = null;
    }
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
const sketch = alone(async (photo, size) => {
  while (wanted && drawn !== wanted && !isVain(wanted)) {
    await load(wanted, ...size, photo);
    if (!drawn) await load(photo, ...size, photo);
  }
});

/** Show a sketch of settings; until it has come, or if there is none, the photograph. */
async function showSketch(settings) {
  const id = value("content", settings);
  if (!id) return;
  const [photo, size] = [pictureUrl(id, SIDE), planned(settings)];
  wanted = isPair(settings) ? photo : sketchUrl(settings, SIDE);
  if (seen !== photo) {
    await load(photo, ...size, photo);
    if (drawn !== photo) return;
  }
  await sketch(photo, size);
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
  if (active(run)) return showSketch(run.settings);
  if (run.width) return load(resultUrl(run), run.width, run.height, photoOf(run));
  const url = run.is_preview ? resultUrl(run) : photoOf(run);
  return load(url, ...planned(run.settings), photoOf(run));
}

const hasVideo = (run) => run?.kind === "film" && Boolean(run.width);

function drawFilm(run) {
  const video = stage.querySelector("video");
  const src = hasVideo(run) ? runUrl(run.id, "film", "") : null;
  if (video?.getAttribute("src") === (src ?? undefined)) return;
  video?.remove();
  if (!src) return;
  const film = document.createElement("video");
  const how = { controls: true, loop: true, preload: "metadata", ariaLabel: "The film" };
  before.before(Object.assign(film, how));
  film.setAttribute("src", src);
}

/** Results that can be compared with the picture on the stage: those of its aspect ratio. */
function rivals(run) {
  const [width, height] = run?.width ? [run.width, run.height] : planned(settings(run));
  const isLike = (one) => Math.abs(one.width * height - one.height * width) <= width + height;
  return state.runs.filter((one) => one.width && one.id !== state.view && isLike(one));
}

function drawBefore(run) {
  const isShown = comparing && !hasVideo(run); // a film's player must not be covered
  before.hidden = divider.hidden = !isShown;
  const rival = rivals(run).find(({ id }) => id === against);
  const url = rival ? resultUrl(rival) : photoOf(run);
  if (find("original").getAttribute("src") !== url) find("original").src = url;
}

/** The buttons above the stage. */
export function Tools() {
  const run = runOf(state.view);
  const others = comparing ? rivals(run) : [];
  const compare = () => changed((comparing = !comparing));
  const pick = ({ target }) => changed((against = target.value));
  return html`${!hasVideo(run) && html`<${Button} id="compare" pressed=${comparing}
      onclick=${compare}>Compare<//>
    ${others.length > 0 && html`<select id="against" value=${against} onchange=${pick}
      aria-label="Compare with"><option value="">the photograph</option>
      ${others.map((one) => html`<option value=${one.id}>${titleOf(one)}, ${one.id}</option>`)}
      </select>`}`}
    <${Button} id="brush" pressed=${brushIsOpen()} onclick=${toggleBrush}>Draw<//>`;
}

function draw() {
  const run = runOf(state.view);
  drawFilm(run);
  drawBefore(run);
  const coming = !active() && state.uploads.find(({ key }) => key === "content");
  const title = coming ? coming.name : run ? titleOf(run) : pictureName(value("content"));
  find("title").textContent = find("title").title = title;
  canvas.setAttribute("aria-label", title);
  if (coming || run) wanted = null; // an older sketch, if it comes only now, is not shown
  if (coming) load(coming.url);
  else if (run) showRun(run);
  else showSketch(settings());
}

/** Show the photograph left of the divider. */
function divide() {
  before.style.clipPath = `inset(0 ${100 - divider.value}% 0 0)`;
}

export function startEasel() {
  listen(divider, { input: divide });
  divide();
  on(draw);
}
