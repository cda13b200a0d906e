// While a picture is painted, changes of what can be steered go to the painter at once.
import { debounced } from "./dom.js";
import { post } from "./http.js";
import { active, attempt, fail, on, same, show, state, value } from "./store.js";

const PATIENCE = 5000; // milliseconds in which the painter should have taken what it was sent

const touched = new Set(); // keys that a person has changed and the server does not know yet
let sending = false;
let wished = null; // { job, settings } that the server knows and the painter has not taken yet

/** Are there changes that the painter does not have yet? */
export const steering = () => sending || touched.size > 0 || wished !== null;

const agree = (one, other) =>
  [...state.controls.keys()].every((key) => same(value(key, one), value(key, other)));

/** Note what the painter has; what it refused is not waited for. */
export function settle(job, refused) {
  if (
    wished &&
    (refused || !active(job) || job.id !== wished.job || agree(job.settings, wished.settings))
  )
    wished = null;
}

/** One request at a time; what changes meanwhile goes with the next: the latest wins. */
async function send() {
  if (sending) return;
  while (touched.size && active() && state.job.status !== "stopping") {
    const { id } = state.job;
    const keys = [...touched];
    touched.clear();
    sending = true;
    // Changes pile up on what was sent before, though the painter may not have it yet.
    const settings = { ...(wished?.job === id ? wished.settings : state.job.settings) };
    for (const key of keys) settings[key] = value(key);
    const sent = (wished = { job: id, settings });
    try {
      await post(`/api/jobs/${id}/steer`, { settings });
      setTimeout(() => wished === sent && (wished = null), PATIENCE);
      settle(state.job);
    } catch (refusal) {
      wished = null;
      fail(refusal, keys[0]);
    }
    sending = false;
  }
  touched.clear();
}

const soon = debounced(send, 150);

function touch(keys) {
  for (const key of keys) if (state.controls.get(key).steerable) touched.add(key);
  if (touched.size) soon();
}

/** Let a finished picture be painted on, with the settings as they are now. */
export async function paintOn(job) {
  const settings = { ...job.settings };
  for (const { key, steerable } of state.controls.values())
    if (steerable) settings[key] = value(key);
  if (await attempt(`/api/jobs/${job.id}/steer`, { settings })) show("job");
}

/** Send what was changed between pressing Paint and the job's beginning. */
export const catchUp = (job) =>
  touch([...state.controls.keys()].filter((key) => !same(value(key), value(key, job.settings))));

on("settings", ({ keys, by }) => {
  if (by === "person" && active()) touch(keys);
});
