// The command line that makes the picture, to copy; asking for it checks the settings, too.
import { button, copy, debounced, el, find } from "./dom.js";
import { post } from "./http.js";
import { clearError } from "./form.js";
import { active, fail, on, state } from "./store.js";

let text, copier;
let asked = 0;
let stale = false; // the form has changed, and its command has not been asked for
let complained = null; // the key beside which the last check has said something

function put(command) {
  if (text.textContent === command) return;
  text.textContent = command;
  copier.textContent = "Copy";
}

async function check() {
  const number = ++asked;
  try {
    const { command } = await post("/api/check", { settings: state.settings });
    if (number !== asked) return;
    if (complained) clearError(complained);
    complained = null;
    draw(command);
  } catch (refusal) {
    if (number !== asked) return;
    complained = refusal.key;
    if (refusal.key) fail(refusal);
    else draw(refusal.message);
  }
}

const soon = debounced(check, 300);
let own = ""; // that of the form

function draw(command = own) {
  own = command;
  const run = state.runs.find(({ id }) => id === state.view);
  const job = state.view === "job" && active() ? state.job : null;
  put(run?.command ?? job?.command ?? own);
  find("whose").textContent = run
    ? "Of the result that is shown"
    : job
      ? "Of what is being painted"
      : "Of the settings";
}

export function startCommand() {
  text = el("pre", { tabindex: "0", "aria-label": "command line" });
  copier = button("Copy", async () => (copier.textContent = await copy(text.textContent, text)));
  find("command").append(el("p", { class: "muted", id: "whose" }), text, copier);
  on("settings", ({ keys }) => {
    // What the painter takes at once is checked there, and the job has its own command.
    stale = active() && keys.every((key) => state.controls.get(key).steerable);
    if (!stale) soon();
  });
  on("job", () => {
    if (!stale || active()) return;
    stale = false;
    soon();
  });
  on("view job runs", () => draw());
  check();
}
