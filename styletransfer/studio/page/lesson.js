// The lesson: the explain page of the settings, its three loss modes side by side.
import { alone, clicked, el, find, say } from "./dom.js";
import { post, state } from "./store.js";

const MODES = ["fake_backward", "loss_attribute", "autograd_function"];

/** The page shows the mode that its address names; so it is opened once for each. */
function frame(id, mode) {
  const name = mode.replaceAll("_", " ");
  const inside = el("iframe", {
    src: `/api/lessons/${id}#${mode}`,
    title: `${name}, explained`,
    sandbox: "allow-scripts",
    onload: () => scrollTo(0, 0),
  });
  return el("section.mode", { "aria-label": name, "data-mode": mode }, el("h3", name), inside);
}

function tell(text) {
  find("making").textContent = text;
  say(text);
}

const draw = alone(async () => {
  tell("The maps are being drawn; this may take a minute.");
  try {
    const { id } = await post("/api/lessons", { settings: state.settings });
    find("frames").replaceChildren(...MODES.map((mode) => frame(id, mode)));
    tell("");
    say("The lesson is there");
  } catch (refusal) {
    tell(refusal.message);
  }
});

export const startLesson = () => clicked({ draw });
