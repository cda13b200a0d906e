// What the stage shows: the content, the job as it is painted, or a result.
import { el, find } from "./dom.js";
import { pictureUrl, runUrl } from "./http.js";
import { active, list, on, picture, pictureName, show, state, value } from "./store.js";
import { setOriginal } from "./compare.js";
import { setSize } from "./stage.js";

const SIDE = 2048; // the largest preview that the server makes
const canvas = find("canvas");
let drawn = null; // what was asked for last; an answer to anything else comes too late
let newest = null; // the latest live picture: { job, blob }
let decoding = false;

function put(image, width, height) {
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(image, 0, 0);
}

/** Load a picture; the stage keeps the one before, in its own shape, until it is there. */
async function load(url, width, height) {
  if (drawn === url) return setSize(width, height);
  drawn = url;
  const image = el("img", { src: url });
  try {
    await image.decode();
  } catch {
    if (drawn === url) drawn = null;
    return;
  }
  if (drawn !== url) return;
  setSize(width, height);
  put(image, image.naturalWidth, image.naturalHeight);
}

/** Draw the latest live picture; never more than one is being decoded. */
async function decode() {
  if (decoding) return;
  decoding = true;
  while (drawn !== newest && live()) {
    const taken = (drawn = newest);
    try {
      const bitmap = await createImageBitmap(taken.blob);
      if (drawn === taken) put(bitmap, bitmap.width, bitmap.height);
      bitmap.close();
    } catch {
      // A broken preview is followed by the next one.
    }
  }
  decoding = false;
}

const hasPicture = (job) => ["finished", "stopped"].includes(job.status);
const live = () =>
  state.view === "job" && newest !== null && newest.job === state.job?.id && !hasPicture(state.job);

/** The size of the pastiche that these settings would make. */
export function planned(settings) {
  const content = picture(value("content", settings));
  if (!content) return [3, 2];
  const scale = value("size", settings) / Math.max(content.width, content.height);
  return [content.width, content.height].map((side) => Math.max(1, Math.round(side * scale)));
}

export function titleOf(settings) {
  const styles = list(value("style", settings)).map(pictureName);
  return `${pictureName(value("content", settings))} in ${styles.join(" + ")}`;
}

function showContent(settings, name) {
  if (!value("content", settings)) return;
  const url = pictureUrl(value("content", settings), SIDE);
  setOriginal(url);
  load(url, ...planned(settings));
  canvas.setAttribute("aria-label", name);
}

function showJob(job) {
  const ended = hasPicture(job);
  const size = planned(job.settings);
  const content = pictureUrl(value("content", job.settings), SIDE);
  setOriginal(content);
  canvas.setAttribute(
    "aria-label",
    `${titleOf(job.settings)}, ${ended ? job.status : "being painted"}`,
  );
  if (ended) return load(runUrl(job.id, "picture", `side=${SIDE}&step=${job.step}`), ...size);
  // Until the first preview comes, the content stands for it.
  if (!live()) return load(content, ...size);
  setSize(...size);
  return decode();
}

function showRun(run) {
  if (!run.width) return showContent(run.settings, titleOf(run.settings));
  setOriginal(runUrl(run.id, "content", `side=${SIDE}`));
  canvas.setAttribute("aria-label", titleOf(run.settings));
  return load(
    runUrl(run.id, "picture", `side=${SIDE}&seconds=${run.seconds}`),
    run.width,
    run.height,
  );
}

function draw() {
  const run = state.runs.find(({ id }) => id === state.view);
  const title = find("title");
  if (state.view === "job" && state.job) {
    title.textContent = titleOf(state.job.settings);
    showJob(state.job);
  } else if (run) {
    title.textContent = titleOf(run.settings);
    showRun(run);
  } else {
    title.textContent = pictureName(value("content"));
    showContent(state.settings, pictureName(value("content")));
  }
  title.title = title.textContent;
}

export function startEasel() {
  on("view job pictures runs", draw);
  on("settings", ({ keys, by }) => {
    if (keys.includes("content") && by === "person" && !active()) show("content");
    else if (state.view === "content") draw();
  });
  on("preview", (blob) => {
    newest = { job: state.job?.id, blob };
    draw();
  });
}
