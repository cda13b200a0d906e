// The studio's page: it asks the server what there is, builds itself, and stays connected.
import { startBrush } from "./brush.js";
import { el, find, unlessSame } from "./dom.js";
import { startEasel } from "./easel.js";
import { buildForm, rowOf } from "./form.js";
import { connect } from "./live.js";
import { startDrops } from "./picker.js";
import { startResults } from "./results.js";
import { startStage } from "./stage.js";
import { emit, fail, get, list, on, picture, PICTURES } from "./store.js";
import { prepare, showAddressed, state, tell } from "./store.js";
import { startTransport } from "./transport.js";

/** Settings from the last visit, without pictures that the server no longer has. */
function remembered() {
  const settings = JSON.parse(localStorage.getItem("settings") ?? "{}");
  for (const [key, value] of Object.entries(settings)) {
    const kind = state.controls.get(key)?.kind;
    if (!kind || (PICTURES.includes(kind) && !list(value).every(picture))) delete settings[key];
  }
  if (!settings.content_regions) delete settings.region_styles;
  return settings;
}

/** What no control has caused stands above the page. */
const drawMessages = unlessSame((texts) => {
  find("messages").replaceChildren(...texts.map((text) => el("p.message", el("span", text))));
});

function tellMessages() {
  const others = state.refusals.filter(({ error, key }) => error !== state.lost && !rowOf(key));
  const gone = state.lost ? [`${state.lost} This page tries again by itself.`] : [];
  drawMessages([...gone, ...others.map(({ error }) => error)]);
}

async function start() {
  on("refusals connection", tellMessages);
  try {
    [state.form, state.pictures] = await Promise.all([get("/api/form"), get("/api/pictures")]);
  } catch (refusal) {
    fail(refusal);
    return;
  }
  const { groups, hidden } = state.form;
  for (const control of [...groups.flatMap(({ controls }) => controls), ...hidden])
    state.controls.set(control.key, control);
  prepare(remembered());
  tell("page");
  const parts = [buildForm, startStage, startEasel, startTransport, startResults];
  for (const begin of [...parts, startDrops, startBrush]) begin();
  emit("pictures");
  showAddressed();
  addEventListener("popstate", () => showAddressed());
  connect();
}

start();
