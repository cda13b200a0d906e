// The studio's page: it asks the server what there is, builds itself, and stays connected.
import { startBrush } from "./brush.js";
import { el, find } from "./dom.js";
import { startEasel } from "./easel.js";
import { buildForm, showError } from "./form.js";
import { connect } from "./live.js";
import { startDrops } from "./picker.js";
import { startResults } from "./results.js";
import { startStage } from "./stage.js";
import { emit, get, list, on, picture, PICTURES, showAddressed, state } from "./store.js";
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

function tell(text) {
  const lines = [...find("messages").children];
  if (lines.some((line) => line.firstChild.textContent === text)) return;
  find("messages").append(el("p.message", el("span", text)));
}

/** What went wrong stands beside the control that caused it, or above the page. */
function startMessages() {
  const gone = el("p.message", el("span"));
  on("refusal", ({ error, key }) => {
    const isKnown = gone.isConnected && gone.textContent.startsWith(error);
    if (!isKnown && (!key || !showError(key, error))) tell(error);
  });
  const clear = () => find("messages").replaceChildren(...(gone.isConnected ? [gone] : []));
  on("asked", clear);
  on("settings", ({ by }) => by === "person" && clear());
  on("connection", (why) => {
    gone.firstChild.textContent = `${why} This page tries again by itself.`;
    const isSaid = (line) => line !== gone && line.firstChild.textContent === why;
    [...find("messages").children].filter(isSaid).forEach((line) => line.remove());
    if (why) find("messages").append(gone);
    else gone.remove();
  });
}

async function start() {
  startMessages();
  try {
    [state.form, state.pictures] = await Promise.all([get("/api/form"), get("/api/pictures")]);
  } catch (refusal) {
    tell(refusal.message);
    return;
  }
  const { groups, hidden } = state.form;
  for (const control of [...groups.flatMap(({ controls }) => controls), ...hidden])
    state.controls.set(control.key, control);
  state.settings = remembered();
  const parts = [buildForm, startStage, startEasel, startTransport, startResults];
  for (const begin of [...parts, startDrops, startBrush]) begin();
  emit("pictures");
  showAddressed();
  addEventListener("popstate", showAddressed);
  connect();
}

start();
