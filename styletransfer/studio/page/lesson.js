// The lesson: the explain page of the settings, its three loss modes side by side.
import { button, el, find, say } from "./dom.js";
import { get, post } from "./http.js";
import { state } from "./store.js";

const MODES = {
  fake_backward: "Fake backward",
  loss_attribute: "Loss attribute",
  autograd_function: "Autograd function",
};
const AGAIN = 700; // milliseconds until it is looked for again
let making = false;

/** The page shows the mode that its address names; so it is opened once for each. */
function frames(id) {
  return Object.entries(MODES).map(([mode, name]) =>
    el(
      "section",
      { class: "mode", "aria-label": name, "data-mode": mode },
      el("h3", {}, name),
      el("iframe", {
        src: `/api/lessons/${id}#${mode}`,
        title: `${name}, explained`,
        sandbox: "allow-scripts",
        onload: () => scrollTo(0, 0),
      }),
    ),
  );
}

/** On a narrow page one mode is shown at a time. */
function choose(mode) {
  find("frames").dataset.shown = mode;
  for (const key of find("modes").children)
    key.setAttribute("aria-pressed", String(key.dataset.mode === mode));
}

async function ready(id) {
  while ((await get(`/api/lessons/${id}`)).status === "working")
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
}

function tell(text) {
  find("making").textContent = text;
  say(text);
}

async function make() {
  if (making) return;
  making = true;
  tell("The maps are being drawn; this may take a minute.");
  try {
    const { id } = await post("/api/lessons", { settings: state.settings });
    await ready(id);
    find("frames").replaceChildren(...frames(id));
    find("modes").hidden = false;
    tell("");
    say("The lesson is there");
  } catch (refusal) {
    tell(refusal.message);
  }
  making = false;
}

export function startLesson() {
  const modes = Object.entries(MODES).map(([mode, name]) =>
    button(name, () => choose(mode), { "data-mode": mode }),
  );
  find("modes").append(...modes);
  find("draw").addEventListener("click", make);
  choose("fake_backward");
}
