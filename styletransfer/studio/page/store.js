// What the page knows, and who is told when it changes.
import { post } from "./http.js";

export const state = {
  form: { groups: [], experiments: [] },
  controls: new Map(), // key -> its control, as /api/form describes it
  pictures: [],
  settings: {}, // what differs from the defaults
  job: null,
  progress: null,
  queue: [],
  runs: [],
  started: null, // the id of the job that this page has begun; "asked" until it is known
  view: "content", // what the stage shows: "content", "job" or the id of a run
};

const bus = new EventTarget();

/** Call `action(detail)` at every event of these names, separated by spaces. */
export function on(names, action) {
  for (const name of names.split(" ")) bus.addEventListener(name, (event) => action(event.detail));
}

export const emit = (name, detail = null) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export const fallback = (key) => state.controls.get(key)?.default ?? null;

/** Return the value of a key among settings in which defaults are left out. */
export const value = (key, settings = state.settings) =>
  key in settings ? settings[key] : fallback(key);

export const list = (given) => (given === null ? [] : [given].flat());

/** Change settings. `by` is "person", or "server" where the page only follows the job. */
export function change(values, by = "person") {
  const keys = Object.keys(values).filter(
    (key) => state.controls.has(key) && !same(values[key], value(key)),
  );
  if (!keys.length) return;
  for (const key of keys) {
    if (same(values[key], fallback(key))) delete state.settings[key];
    else state.settings[key] = values[key];
  }
  localStorage.setItem("settings", JSON.stringify(state.settings));
  emit("settings", { keys, by });
}

/** Take over whole settings; keys that they leave out go back to their defaults. */
export function adopt(settings, by = "person") {
  const taken = [...state.controls.values()].map(({ key, kind }) => {
    const given = value(key, settings);
    return [key, kind === "pictures" ? list(given).filter(Boolean) : given];
  });
  // A run may name pictures that are gone; what must be there stays as it was.
  const needed = ["content", "style"];
  change(
    Object.fromEntries(taken.filter(([key, given]) => !needed.includes(key) || list(given).length)),
    by,
  );
}

export const picture = (id) => state.pictures.find((one) => one.id === id);

/** A picture's name, without the ending of its file. */
export const pictureName = (id) => picture(id)?.name.replace(/\.\w{2,4}$/, "") ?? "a picture";

export const active = (job = state.job) =>
  ["starting", "painting", "paused", "stopping"].includes(job?.status);

/** The id of the run that the stage shows, if it shows one. */
export const shownRun = () => (state.view === "job" ? (state.job?.id ?? null) : state.view);

export function show(view) {
  state.view = view;
  emit("view");
}

/** Show a refusal: beside its control, or else `key`'s, or else above the page. */
export function fail(refusal, key = null) {
  emit("refusal", { error: refusal.message, key: refusal.key ?? key });
}

/** Post, and show what was refused; true if it was done. */
export async function attempt(path, body) {
  try {
    await post(path, body);
    return true;
  } catch (refusal) {
    fail(refusal);
    return false;
  }
}
