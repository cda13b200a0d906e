// The studio's page: loads form and pictures from the server, draws them, and stays connected.
import { Brushes, startBrush } from "./brush.js";
import { find } from "./dom.js";
import { Player, startEasel, Tools } from "./easel.js";
import { Panel, placeOf } from "./form.js";
import { startHistory } from "./history.js";
import { connect } from "./live.js";
import { startPicker } from "./picker.js";
import { html, render } from "./preact.js";
import { Desk, startResults } from "./results.js";
import { startStage } from "./stage.js";
import { changed, fail, get, on, prepare, remembered, showAddressed, state } from "./store.js";
import { Transport } from "./transport.js";

/** The messages above the page: a lost connection, and errors that belong to no control. */
function Messages() {
  const others = state.refusals.filter(({ error, key }) => error !== state.lost && !placeOf(key));
  const gone = state.lost ? [`${state.lost} This page tries again by itself.`] : [];
  return [...gone, ...others.map(({ error }) => error)].map((text) =>
    html`<p class="message" key=${text}><span>${text}</span></p>`);
}

const PARTS = { tools: Tools, brushes: Brushes, player: Player, transport: Transport, form: Panel,
  desk: Desk };

const draw = (parts) => () =>
  Object.entries(parts).forEach(([id, Part]) => render(html`<${Part} />`, find(id)));

async function start() {
  on(draw({ messages: Messages }));
  try {
    [state.form, state.pictures] = await Promise.all([get("/api/form"), get("/api/pictures")]);
  } catch (refusal) {
    fail(refusal);
    return;
  }
  const { controls, later, hidden } = state.form;
  for (const control of [...controls, ...later, ...hidden]) state.controls.set(control.key, control);
  const { settings, message } = remembered();
  prepare(settings);
  find("form").addEventListener("submit", (event) => event.preventDefault());
  on(draw(PARTS));
  const parts = [startStage, startEasel, startPicker, startBrush, startResults, startHistory];
  for (const begin of parts) begin();
  showAddressed();
  if (message) fail({ message });
  addEventListener("popstate", () => showAddressed());
  connect();
  changed();
}

start();
