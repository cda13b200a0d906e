// What the stage shows: the content, the run as it is painted, or a result; and, left of a line,
// the photograph before.
import { alone, busy, clicked, el, find, listen, press, unlessSame, within } from "./dom.js";
import { setSize } from "./stage.js";
import { active, list, on, picture, pictureName, pictureUrl, runOf } from "./store.js";
import { runUrl, scaled, settings, show, state, titleOf, value } from "./store.js";

const SIDE = 2048; // the largest preview that the server makes
const canvas = find("canvas");
const [before, divider, stage] = [find("before"), find("divider"), find("stage")];
let drawn = null; // what was asked for last; an answer to anything else comes too late
let loading = null; // the promise of the picture that was asked for last
let seen = null; // the address of the photograph before what the canvas shows
let newest = null; // the latest live picture: { id, blob }

function put(image, width, height) {
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(image, 0, 0);
}

/** Compare with a photograph. */
const putBefore = unlessSame((url) => (find("original").src = url));

/** Load a picture; the stage keeps what it shows, in its own shape, until it is there. */
async function load(url, width, height, original) {
  putBefore(original);
  if (drawn !== url) loading = busy(stage, fetchInto(url, original));
  drawn = url;
  await loading;
  if (drawn === url) setSize(width, height);
}

async function fetchInto(url, original) {
  const image = el("img", { src: url });
  await image.decode().catch(() => {});
  if (drawn !== url) return;
  if (!image.naturalWidth) return void (drawn = null);
  setSize(image.naturalWidth, image.naturalHeight); // its own shape, whoever asks next
  put(image, image.naturalWidth, image.naturalHeight);
  seen = original;
}

const isLive = (run) => active(run) && newest?.id === run.id;

/** Draw the latest live picture; never more than one is being decoded. */
const decode = alone(async () => {
  while (drawn !== newest && isLive(runOf(state.view))) {
    const taken = (drawn = newest);
    const bitmap = await createImageBitmap(taken.blob).catch(() => null); // the next one follows
    if (bitmap && drawn === taken) {
      setSize(...planned(state.running.settings));
      put(bitmap, bitmap.width, bitmap.height);
      seen = null;
    }
    bitmap?.close();
  }
});

/** The size of the pastiche that these settings would make, as far as there can be one. */
function planned(settings) {
  const content = picture(value("content", settings));
  if (!content) return [3, 2];
  const size = within(64, value("size", settings), 65536);
  return scaled(content, size / Math.max(content.width, content.height));
}

/** Show a first look at the content of settings, and that it is the picture before. */
async function showContent(settings) {
  const id = value("content", settings);
  if (!id) return;
  const [url, size] = [pictureUrl(id, SIDE), planned(settings)];
  const shares = list(value("style_weights", settings)).map((share) => ["share", share]);
  const styles = list(value("style", settings)).map((style) => ["style", style]);
  const query = new URLSearchParams([["content", id], ...styles, ...shares]);
  if (seen !== url) {
    await load(url, ...size, url); // the photograph, until there is a look at it
    if (drawn !== url) return;
  }
  await load(`/api/look?${query}`, ...size, url);
  if (!drawn) load(url, ...size, url);
}

function showRun(run) {
  if (active(run)) putBefore(pictureUrl(value("content", run.settings), SIDE));
  if (isLive(run)) return decode();
  const ended = ["finished", "stopped"].includes(run.status) && !run.written;
  if (ended) return null; // its picture comes with the list of results
  if (!run.width) return showContent(run.settings);
  const url = runUrl(run.id, "picture", `side=${SIDE}&seconds=${run.seconds}`);
  return load(url, run.width, run.height, runUrl(run.id, "content", `side=${SIDE}`));
}

const drawFilm = unlessSame((src) => {
  stage.querySelector("video")?.remove();
  const how = { src, controls: true, loop: true, preload: "metadata", "aria-label": "The film" };
  if (src) before.before(el("video", how));
});

function draw() {
  const run = runOf(state.view);
  drawFilm(run?.is_film && run.width ? runUrl(run.id, "film", "") : null);
  const title = run ? titleOf(run) : pictureName(value("content"));
  find("title").textContent = find("title").title = title;
  canvas.setAttribute("aria-label", title);
  if (run) showRun(run);
  else showContent(settings());
}

/** Show the photograph left of the divider. */
function divide() {
  before.style.clipPath = `inset(0 ${100 - divider.value}% 0 0)`;
}

function compare() {
  before.hidden = divider.hidden = !before.hidden;
  press(find("compare"), !before.hidden);
}

export function startEasel() {
  clicked({ compare });
  listen(divider, { input: divide });
  divide();
  on("view running pictures runs", draw);
  on("settings", ({ keys, by }) => {
    const isNew = keys.some((key) => ["content", "style"].includes(key));
    if (isNew && by === "person" && !active() && state.view) show(null);
    else if (!runOf(state.view)) draw();
  });
  on("preview", (blob) => {
    newest = { id: state.running?.id, blob };
    draw();
  });
}
