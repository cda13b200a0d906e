// What the page knows, who is told when it changes, and requests to the server.

export const state = {
  form: { groups: [], hidden: [], looks: [] },
  controls: new Map(), // key -> its control, as /api/form describes it
  pictures: [],
  settings: {}, // what differs from the defaults
  current: null, // the run that is painted, or was last
  progress: null, // the last report of a run
  queue: [],
  runs: [],
  target: "next", // whose settings the form shows: "running", the run at work, or "next"
  next: {}, // the settings of the next run while the form shows those of the run at work
  asked: false, // whether this page has asked for a run that it has not heard of yet
  view: "content", // what the stage shows: "content", "current" or the id of a run
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
/** Add a picture to those that can be chosen for a key, and return its id. */
export async function upload(name, blob, purpose) {
  const path = `/api/pictures?${new URLSearchParams({ name, purpose })}`;
  const added = await sent(path, "application/octet-stream", blob);
  if (!picture(added.id)) state.pictures.push(added);
  return added.id;
}

/** Remove the picture that a key has, which was added; the key goes back to its default. */
export async function discard(key) {
  const chosen = value(key);
  const [id] = list(chosen);
  change({ [key]: fallback(key) }); // first, so that nothing more is asked about it
  if (!(await attempt(`/api/pictures/${id}/delete`))) return change({ [key]: chosen });
  state.pictures = state.pictures.filter((one) => one.id !== id);
  emit("pictures");
}

export const pictureUrl = (id, side) => `/api/pictures/${id}?side=${side}`;
export const runUrl = (id, part, query) => `/api/runs/${id}/${part}?${query}`;

/** Show a refusal: beside its control, or else `key`'s, or else above the page. */
export function fail(refusal, key = null) {
  emit("refusal", { error: refusal.message, key: refusal.key ?? key });
}

/** Post, and show what was refused; true if it was done. */
export const attempt = (path, body) =>
  post(path, body).then(() => true, (refusal) => fail(refusal));

export const list = (value) => (value === null ? [] : [value].flat());

export const fallback = (key) => state.controls.get(key)?.default ?? null;

/** Return the value of a key among settings in which defaults are left out. */
export const value = (key, settings = state.settings) =>
  key in settings ? settings[key] : fallback(key);

/** Return all keys of the form, or those that act on a run, with their values in some settings. */
export function values(settings, { steerable = false } = {}) {
  const controls = [...state.controls.values()].filter((one) => one.steerable || !steerable);
  return Object.fromEntries(controls.map(({ key }) => [key, value(key, settings)]));
}

/** Change settings. `by` is "person", or "server" where the page only follows the run. */
export function change(wanted, by = "person") {
  const keys = Object.keys(wanted).filter(
    (key) => state.controls.has(key) && !same(wanted[key], value(key)),
  );
  if (!keys.length) return;
  for (const key of keys) {
    if (same(wanted[key], fallback(key))) delete state.settings[key];
    else state.settings[key] = wanted[key];
  }
  localStorage.setItem("settings", JSON.stringify(state.settings));
  emit("settings", { keys, by });
}

/** Take over whole settings; keys that they leave out go back to their defaults. */
export function adopt(settings, by = "person") {
  const wanted = values(settings);
  wanted.style = list(wanted.style).filter(Boolean);
  // A run may name pictures that are gone; what must be there stays as it was.
  for (const key of ["content", "style"]) if (!list(wanted[key]).length) delete wanted[key];
  change(wanted, by);
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

export const active = (run = state.current) =>
  ["starting", "painting", "paused", "stopping"].includes(run?.status);

/** The id of the run that the stage shows, if it shows one. */
export const shownId = () => (state.view === "current" ? (state.current?.id ?? null) : state.view);

/** That run, as it is painted or as it was kept; null where the stage shows a photograph. */
export const shownRun = () =>
  state.view === "current" ? state.current : (state.runs.find(({ id }) => id === state.view) ?? null);

/** Show a view on the stage. A result gets an address, so that Back returns to what was there. */
export function show(view) {
  const hash = ["content", "current"].includes(view) ? "" : `#${view}`;
  if (hash !== location.hash) history.pushState(null, "", hash || location.pathname);
  state.view = view;
  emit("view");
}

/** Show what the page's address names. */
export function showAddressed() {
  state.view = location.hash.slice(1) || (active() ? "current" : "content");
  emit("view");
}
