// The page's state, and requests to the server. Code that changes `state` calls changed(), and the
// page is drawn again from it.
import { remember } from "./history.js";

// Settings are objects in which defaults are left out. There are two: `next`, and the settings of
// `running`, to which its `edits` are added: changes here that the painter has not used yet.
export const state = {
  form: { controls: [], later: [], hidden: [], looks: [] },
  controls: new Map(), // key -> its control, as /api/form describes it
  pictures: [],
  uploads: [], // files that are being sent: { key, name, url, share }
  next: {}, // the settings of the next run
  running: null, // the run that is being painted, or the last one, with `edits`; see live.js
  aim: "next", // whose settings the panel shows: those of "this" run on the stage, or of the "next"
  queue: [],
  runs: [],
  view: null, // the id of the run on the stage; null for the sketch of the panel's settings
  asked: false, // whether this page has asked for a run that the server has not reported yet
  refusals: [], // what was refused: { error, key }; the key may be null
  sketches: new Map(), // id of a style or name of a look -> the address of its small picture
  lost: null, // why the server cannot be reached
  contacts: 0, // how often the server could be reached again; what failed is then tried again
  isBare: false, // whether the stage shows a photograph without its sketch
  faded: {}, // the result that its photograph shines through: { id, share }; see `opacityOf`
  cost: {}, // of the panel's settings: `command`, `seconds`, and a `warning`
};

/** Kinds of controls whose values are ids of pictures. */
const PICTURES = ["picture", "pictures", "regions", "mask"];
/** Keys on which the address of a sketch depends, and keys whose pictures are drawn over it. */
const SKETCHED = ["content", "style", "style_weights", "objective.content_weight", "color"];
SKETCHED.push("color_strength", "style_scale");
const DRAWN = ["content_regions", "protect"]; // LAYERS of layers.js
const SKETCH_SIDE = 512;
/** Value of content_regions in place of a picture: the run finds the regions. */
export const FOUND = "auto";
/** Settings of the last visit that cannot be read are kept under this name. Longer texts than
 * LONGEST are none of this page's. */
const UNREAD = "settings.unread";
const LONGEST = 2 ** 16;

const watchers = [];
const followers = [];
let isDue = false;

/** Call `action` after changes of the state. */
export const on = (action) => watchers.push(action);

/** Call `action(keys)` after settings of these keys were changed on this page. */
export const onChange = (action) => followers.push(action);

export function changed() {
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    watchers.forEach((action) => action());
  });
}

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

const GONE = "The studio's server does not answer; look at the terminal in which it was started.";

/** An error of a request: one line, its key or null, and whether the server did not answer. */
const refusal = (message, key = null, isLost = false) =>
  Object.assign(new Error(message), { key, isLost });

async function answer(path, options) {
  const response = await fetch(path, options).catch(() => null);
  if (!response) throw refusal(GONE, null, true);
  const said = await response.json().catch(() => ({}));
  if (response.ok) return said;
  throw refusal(said.error ?? `The server answered ${response.status}.`, said.key);
}

export const get = (path) => answer(path, { cache: "no-store" });
export const post = (path, body = {}) =>
  answer(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

/** Upload a picture for the key `purpose`; return it. `progress` gets the share that is sent. */
export function upload(name, blob, purpose, progress = () => {}) {
  const request = new XMLHttpRequest(); // fetch does not report its progress
  request.open("POST", `/api/pictures?${new URLSearchParams({ name, purpose })}`);
  request.responseType = "json";
  request.upload.onprogress = ({ loaded, total }) => progress(loaded / total);
  return new Promise((resolve, reject) => {
    request.onerror = () => reject(refusal(GONE, null, true));
    request.onload = () => {
      const { status, response } = request;
      if (status !== 200) return reject(refusal(response?.error ?? `The server answered ${status}.`));
      if (!picture(response.id)) state.pictures.push(response);
      return resolve(response);
    };
    request.send(blob);
  });
}

/** Remove the uploaded picture of a key from the server; the key gets its default again. */
export async function discard(key) {
  const [id] = list(value(key));
  if (!(await attempt(`/api/pictures/${id}/delete`, {}, key))) return;
  forgive();
  change({ [key]: fallback(key) }, false);
  changed((state.pictures = state.pictures.filter((one) => one.id !== id)));
}

export const pictureUrl = (id, side) => `/api/pictures/${id}?side=${side}`;
/** The opacity of a result over its photograph, from 0 to 1. */
export const opacityOf = ({ id }) => (state.faded.id === id ? state.faded.share : 1);
export const runUrl = (id, part, query) => `/api/runs/${id}/${part}?${query}`;

/** The address of a sketch of settings. */
export function sketchUrl(settings, side) {
  const shown = SKETCHED.filter((key) => key in settings).map((key) => [key, settings[key]]);
  const size = Math.min(value("size", settings), SKETCH_SIDE);
  const asked = JSON.stringify({ ...Object.fromEntries(shown), ...(size >= 1 && { size }) });
  return `/api/look?${new URLSearchParams({ settings: asked, side })}`;
}

/** Show an error beside the control of its own key, or else of `key`, or else above the page. */
export function fail({ message, key: own }, key = null) {
  const one = { error: message, key: own ?? key };
  state.refusals = [...state.refusals.filter((other) => !same(other, one)), one];
  changed();
}

/** Remove the errors that are shown, except those for which `stays(error)` is true. */
export function forgive(stays = () => false) {
  state.refusals = state.refusals.filter(stays);
  changed();
}

/** Note that the server can be reached again. */
export function reached() {
  forgive(({ error }) => error !== GONE && error !== state.lost);
  state.lost = null;
  state.contacts++;
}

/** Post, and return the answer; if that fails, show the error and return undefined. */
export const attempt = (path, body, key) =>
  post(path, body).catch((refused) => fail(refused, key));

export const list = (value) => (value === null ? [] : [value].flat());

export const fallback = (key) => state.controls.get(key)?.default ?? null;

/** The run whose settings the panel shows; null for the next one. */
export const subject = () => (state.aim === "this" ? runOf(state.view) : null);

/** The settings of a run, or of the next one, whose pictures replace those that are gone. */
export function settings(run = subject()) {
  const all = { ...(run?.settings ?? state.next), ...run?.edits };
  const style = list(value("style", all)).filter(Boolean);
  all.content = value("content", all) ?? value("content", state.next);
  return { ...all, style: style.length ? style : value("style", state.next) };
}

/** Return the value of a key among settings. */
export const value = (key, among = settings()) => (key in among ? among[key] : fallback(key));

/** Return all keys of the form with their values in some settings. */
export const values = (among) =>
  Object.fromEntries([...state.controls.keys()].map((key) => [key, value(key, among)]));

/** Set the settings of the next run. */
export function prepare(wanted) {
  const kept = Object.entries(wanted).filter(([key, one]) => !same(one, fallback(key)));
  state.next = Object.fromEntries(kept);
  keep("settings", JSON.stringify(state.next));
  changed();
}

/** Keep a text in the browser for the next visit, unless its storage is full or switched off. */
function keep(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch {} // the page works without
}

/** Return the object that is kept as "settings" from the last visit; undefined if it is none. */
function parsedSettings(text) {
  try {
    const kept = text.length < LONGEST && JSON.parse(text);
    return isMap(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Return settings without pictures that the server no longer has. */
export function available(all) {
  const isThere = ([key, one]) => !PICTURES.includes(state.controls.get(key).kind) || areThere(one);
  const { region_styles, ...kept } = Object.fromEntries(Object.entries(all).filter(isThere));
  return kept.content_regions ? { ...kept, region_styles: region_styles ?? {} } : kept;
}

const isMap = (one) => one?.constructor === Object;
const isText = (one) => typeof one === "string";
/** Kind of control -> whether it can have a value; any text may be the value of other kinds. */
const FITS = {
  pictures: (one) => list(one).every(isText),
  picture: (one, { key }) => isText(one) || (key === "style_source" && list(one).every(isText)),
  number: Number.isFinite,
  integer: Number.isFinite,
  numbers: (one) => list(one).every(Number.isFinite),
  mapping: (one) => isMap(one) && Object.values(one).every(Number.isFinite),
  choice: (one, { choices }) => choices.includes(one),
};

/** Return settings from the last visit, without pictures that the server no longer has, and a
 * message or null. Another program, or another version, may have left values at this address. What
 * no control can have is kept in the browser under the name UNREAD, and the message says so. */
export function remembered() {
  let text = "{}";
  try {
    text = localStorage.getItem("settings") ?? text;
  } catch {} // the storage is switched off
  const kept = parsedSettings(text);
  const wrong = kept ? [] : ["all"];
  for (const [key, one] of Object.entries(kept ?? {})) {
    const control = state.controls.get(key);
    const isFit = control && (FITS[control.kind] ?? isText)(one, control);
    if (control && !isFit && one !== null) wrong.push(control.label);
    if (!isFit) delete kept[key];
  }
  if (!wrong.length) return { settings: available(kept), message: null };
  keep("settings", "{}"); // first, because there may not be room for both
  keep(UNREAD, text);
  const message = `Settings of your last visit cannot be read: ${wrong.join(", ")}. They are ` +
    `put aside in this browser's storage, under ${UNREAD}.`;
  return { settings: available(kept ?? {}), message };
}

/** The regions' styles after a change of the chosen styles: each region keeps its own if it can. */
function keptRegions(styles) {
  const before = list(value("style"));
  const all = Object.entries(value("region_styles") ?? {});
  const moved = all.map(([name, number]) => [name, styles.indexOf(before[number - 1]) + 1]);
  return Object.fromEntries(moved.filter(([, number]) => number));
}

const sources = new Map(); // a painting -> the photograph that it was painted from, or null

/** Change the panel's settings; if a run cannot change one of them, all are for the next run. A
 * change that only follows from another one is no change `byHand`. */
export function change(wanted, byHand = true) {
  const { most_styles: most } = state.form;
  if (list(wanted.style ?? null).length > most)
    return fail({ message: `At most ${most} styles can be mixed; remove some first.` }, "style");
  const rules = { ...wanted };
  if (wanted.content && wanted.content !== value("content"))
    Object.assign(rules, { region_styles: {}, protect: null },
      drawnFor("content_regions") && { content_regions: null });
  if (rules.content && list(value("style_source")).some((one) => one.includes(":")))
    rules.style_source = null; // a frame of the film before
  if (wanted.style && !("style_source" in wanted)) {
    sources.set(String(value("style")), value("style_source")); // it comes back with its painting
    const source = sources.get(String(wanted.style)) ?? null;
    rules.style_source = areThere(source) ? source : null;
  }
  if (wanted.style && drawnFor("content_regions") && !("region_styles" in rules))
    rules.region_styles = keptRegions(wanted.style);
  if (![null, undefined, FOUND].includes(wanted.content_regions)) rules.style_weights = []; // each region has one style
  const isNew = ([key, one]) => state.controls.has(key) && !same(one, value(key));
  const edits = Object.fromEntries(Object.entries(rules).filter(isNew));
  const keys = Object.keys(edits);
  if (!keys.length) return changed();
  if (byHand) remember();
  const stays = () => !byHand; // a message stays when something else, like a saved stroke, follows
  if (steered() && keys.every((key) => state.controls.get(key).steerable)) {
    const { running } = state;
    Object.assign(running, { edits: { ...running.edits, ...edits }, awaited: Infinity });
    aim("this", stays);
  } else {
    prepare({ ...settings(), ...edits });
    aim("next", stays);
    const isSeen = keys.some((key) => [...SKETCHED, ...DRAWN].includes(key));
    if (!active() && state.view && isSeen) show(null);
  }
  return followers.forEach((action) => action(keys));
}

/** Return whether changes in the panel act on the run that is being painted. */
export const steered = () => active(subject()) && subject().kind === "picture";

/** Show the settings of the run on the stage in the panel, or those of the next one; remove the
 * errors, except those for which `stays(error)` is true. */
export function aim(target, stays) {
  state.aim = target;
  forgive(stays);
}

/** Whether the server has pictures, which may be named by their frames, as ID:4.8s. */
const areThere = (ids) => list(ids).every((id) => id === FOUND || picture(id.split(":")[0]));

/** The id of the picture of what is drawn for a key of the panel's settings, or null. */
export const drawnFor = (key) => (value(key) === FOUND ? null : value(key));

export const picture = (id) => state.pictures.find((one) => one.id === id);

/** Whether the panel's settings paint a film; then its id has the ending of its file. */
export const isFilm = () => Boolean(value("content")?.includes("."));

/** Whether settings paint like a photograph whose painting is the style. */
export const isPair = (among = settings()) => Boolean(value("style_source", among));

/** The sides of a picture that is shrunk or grown by a factor, in whole pixels. */
export const scaled = ({ width, height }, factor) =>
  [width, height].map((side) => Math.max(1, Math.round(side * factor)));

/** A picture's name, without the ending of its file. */
export const pictureName = (id) => picture(id)?.name.replace(/\.\w{2,4}$/, "").replaceAll("_", " ") ?? "a picture";

/** The title of a run: the names of its pictures. */
export function titleOf({ settings }) {
  const styles = list(value("style", settings)).map(pictureName).join(" + ");
  return `${pictureName(value("content", settings))} in ${styles}`;
}

export const active = (run = state.running) =>
  ["starting", "painting", "paused", "stopping"].includes(run?.status);

/** The run of the panel if it was stopped and can be continued; else null. */
export function stopped() {
  const run = subject();
  return run?.has_checkpoint && !active(run) && run.status !== "finished" ? run : null;
}

/** The run with an id, as it is being painted or as it is on disk; null if there is none. */
export function runOf(id) {
  const kept = state.runs.find((run) => run.id === id);
  const isKept = kept && kept.status !== "running" && !active();
  return !isKept && state.running?.id === id ? state.running : (kept ?? null);
}

/** Show a run on the stage, or the sketch. A run has an address, so that Back returns to it. */
export function show(id, { how = "pushState", target } = {}) {
  const hash = id ? `#${id}` : "";
  if (hash !== location.hash) history[how](null, "", hash || location.pathname);
  showAddressed(target);
}

/** Show what the page's address names, and its settings. */
export function showAddressed(target = location.hash ? "this" : "next") {
  state.view = location.hash.slice(1) || null;
  aim(target);
}
