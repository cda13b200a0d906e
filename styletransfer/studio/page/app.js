// The studio's page: it asks the server what there is, builds itself, and stays connected.
import { startBrush } from "./brush.js";
import { startCommand } from "./command.js";
import { startCompare } from "./compare.js";
import { startCurves } from "./curves.js";
import { startDrops } from "./drop.js";
import { startEasel } from "./easel.js";
import { buildForm } from "./form.js";
import { startGestures } from "./gestures.js";
import { get } from "./http.js";
import { startLesson } from "./lesson.js";
import { connect } from "./live.js";
import { startMessages, tell } from "./messages.js";
import { startMoments } from "./moments.js";
import { startResult } from "./result.js";
import { startStage } from "./stage.js";
import { emit, list, state } from "./store.js";
import { startStrip } from "./strip.js";
import { startTabs } from "./tabs.js";
import { startTransport } from "./transport.js";

/** Settings from the last visit, without pictures that the server no longer has. */
function remembered() {
  const kept = JSON.parse(localStorage.getItem("settings") ?? "{}");
  const there = (id) => state.pictures.some((one) => one.id === id);
  for (const [key, given] of Object.entries(kept)) {
    const kind = state.controls.get(key)?.kind;
    const pictures =
      ["picture", "pictures", "regions", "mask"].includes(kind) && typeof given !== "object";
    if (!kind || ((pictures || kind === "pictures") && !list(given).every(there))) delete kept[key];
  }
  if (!kept.content_regions) delete kept.region_styles;
  return kept;
}

async function start() {
  startMessages();
  try {
    [state.form, state.pictures] = await Promise.all([get("/api/form"), get("/api/pictures")]);
  } catch (refusal) {
    tell(refusal.message);
    return;
  }
  for (const { controls } of state.form.groups)
    for (const control of controls) state.controls.set(control.key, control);
  state.settings = remembered();
  buildForm();
  for (const begin of [
    startTabs,
    startStage,
    startGestures,
    startCompare,
    startEasel,
    startTransport,
    startMoments,
    startCurves,
    startStrip,
    startResult,
    startCommand,
    startDrops,
    startBrush,
    startLesson,
  ])
    begin();
  emit("pictures");
  connect();
}

start();
