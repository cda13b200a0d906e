// What the page knows, who is told when it changes, and requests to the server.

// Settings are objects in which defaults are left out. There are two: those of `next`, and those of
// `running`, on which `edits` lie, which were made here and which the painter has not done.
export const state = {
  form: { groups: [], hidden: [], looks: [] },
  controls: new Map(), // key -> its control, as /api/form describes it
  pictures: [],
  next: {}, // the settings of the next run
  running: null, // the run that is painted, or was last, with `edits`; see live.js
  aim: "next", // whose settings the panel shows: those of "this" run on the stage, or of the "next"
  queue: [],
  runs: [],
  view: null, // the id of the run on the stage; null for the photograph of the panel
  asked: false, // whether this page has asked for a run that it has not heard of yet
  refusals: [], // what was refused: { error, key }; the key may be null
  lost: null, // why the server cannot be reached
};

/** Kinds of controls whose values are ids of pictures. */
export const PICTURES = ["picture", "pictures", "regions", "mask"];

const bus = new EventTarget();

/** Call `action(detail)` at every event of these names, separated by spaces. */
export function on(names, action) {
  for (const name of names.split(" ")) bus.addEventListener(name, (event) => action(event.detail));
}

export const emit = (name, detail = null) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** What the server, or the way to it, refused: one line, and the key that caused it, or null. */
const refusal = (message, key = null) => Object.assign(new Error(message), { key });

async function answer(path, options) {
  const response = await fetch(path, options).catch(() => null);
  if (!response)
    throw refusal("The studio's server does not answer; look at the terminal it was started in.");
  const said = await response.json().catch(() => ({}));
  if (response.ok) return said;
  throw refusal(said.error ?? `The server answered ${response.status}.`, said.key);
}

const sent = (path, type, body) =>
  answer(path, { method: "POST", headers: { "Content-Type": type }, body });

export const get = (path) => answer(path, { cache: "no-store" });
export const post = (path, body = {}) => sent(path, "application/json", JSON.stringify(body));
/** Add a picture to those that can be chosen for a key, and return it. */
export async function upload(name, blob, purpose) {
  const path = `/api/pictures?${new URLSearchParams({ name, purpose })}`;
  const added = await sent(path, "application/octet-stream", blob);
  if (!picture(added.id)) state.pictures.push(added);
  return added;
}

/** Remove the picture that a key has, which was added; the key goes back to its default. */
export async function discard(key) {
  const chosen = value(key);
  const [id] = list(chosen);
  change({ [key]: fallback(key) }); // first, so that nothing more is asked about it
  const refusal = await post(`/api/pictures/${id}/delete`).then(() => null, (error) => error);
  if (refusal) change({ [key]: chosen });
  else state.pictures = state.pictures.filter((one) => one.id !== id);
  emit("pictures");
  if (refusal) fail(refusal, key);
}

export const pictureUrl = (id, side) => `/api/pictures/${id}?side=${side}`;
export const runUrl = (id, part, query) => `/api/runs/${id}/${part}?${query}`;

/** Show a refusal: beside its control, or else `key`'s, or else above the page. */
export function fail({ message, key: own }, key = null) {
  const one = { error: message, key: own ?? key };
  state.refusals = [...state.refusals.filter((other) => !same(other, one)), one];
  emit("refusals");
}

/** Take back what was refused, unless `stays(refusal)`. */
export function forgive(stays = () => false) {
  state.refusals = state.refusals.filter(stays);
  emit("refusals");
}

/** Post, and show what was refused; the answer, or undefined. */
export const attempt = (path, body) => post(path, body).catch((refusal) => fail(refusal));

export const list = (value) => (value === null ? [] : [value].flat());

export const fallback = (key) => state.controls.get(key)?.default ?? null;

/** The run whose settings the panel shows; null for the next one. */
export const subject = () => (state.aim === "this" ? runOf(state.view) : null);

/** The settings of a run, or of the next one; those of the next replace pictures that are gone. */
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
  const changed = Object.entries(wanted).filter(([key, one]) => !same(one, fallback(key)));
  state.next = Object.fromEntries(changed);
  localStorage.setItem("settings", JSON.stringify(state.next));
}

let told = {}; // the settings that the panel shows

/** Tell which of the panel's settings are new; `by` is who changed them, "person" or "page". */
export function tell(by) {
  const [before, now] = [values(told), values(settings())];
  told = { ...settings() };
  const keys = Object.keys(now).filter((key) => !same(now[key], before[key]));
  if (keys.length) emit("settings", { keys, by });
}

/** Change the panel's settings; what this run cannot have goes to the next one, with the others. */
export function change(wanted) {
  const isNew = ([key, one]) => state.controls.has(key) && !same(one, value(key));
  const edits = Object.fromEntries(Object.entries(wanted).filter(isNew));
  const keys = Object.keys(edits);
  if (!keys.length) return;
  if (steered() && keys.every((key) => state.controls.get(key).steerable)) {
    emit("edits", edits);
    aim("this", "person");
  } else {
    prepare({ ...settings(), ...edits });
    aim("next", "person");
  }
}

/** Return whether changes in the panel act on the run that is being painted. */
export const steered = () => active(subject()) && !subject().is_film;

/** Show the settings of the run on the stage in the panel, or those of the next one. */
export function aim(target, by = "page") {
  state.aim = target;
  forgive();
  tell(by);
  emit("running");
}

export const picture = (id) => state.pictures.find((one) => one.id === id);

/** The sides of a picture that is shrunk or grown by a factor, in whole pixels. */
export const scaled = ({ width, height }, factor) =>
  [width, height].map((side) => Math.max(1, Math.round(side * factor)));

/** A picture's name, without the ending of its file. */
export const pictureName = (id) => picture(id)?.name.replace(/\.\w{2,4}$/, "") ?? "a picture";

/** The title of a run: the names of its pictures. */
export function titleOf({ settings }) {
  const styles = list(value("style", settings)).map(pictureName).join(" + ");
  return `${pictureName(value("content", settings))} in ${styles}`;
}

export const active = (run = state.running) =>
  ["starting", "painting", "paused", "stopping"].includes(run?.status);

/** The run of the panel, where it was stopped and can be continued; else null. */
export function stopped() {
  const run = subject();
  return run?.has_checkpoint && !active(run) && run.status !== "finished" ? run : null;
}

/** The run of an id, as it is painted or as it was kept; null if there is none. */
export function runOf(id) {
  const kept = state.runs.find((run) => run.id === id);
  const isKept = kept && kept.status !== "running" && !active();
  return !isKept && state.running?.id === id ? state.running : (kept ?? null);
}

/** Show a run on the stage, or the photograph. A run has an address, so that Back returns to it. */
export function show(id, { how = "pushState", target } = {}) {
  const hash = id ? `#${id}` : "";
  if (hash !== location.hash) history[how](null, "", hash || location.pathname);
  showAddressed(target);
}

/** Show what the page's address names, and its settings. */
export function showAddressed(target = location.hash ? "this" : "next") {
  state.view = location.hash.slice(1) || null;
  aim(target);
  emit("view");
}
