// Moments of the job, to any of which one can go back.
import { button, el, find } from "./dom.js";
import { attempt, on, same, state } from "./store.js";

const PICTURES = ["picture", "pictures", "regions", "mask", "mapping"];
let drawn = null;

/** "before objective.content_weight=0.4" in the words of the form. */
function reason(text) {
  for (const { key, label, kind } of state.controls.values())
    if (text.startsWith(`before ${key}=`))
      return PICTURES.includes(kind)
        ? `before another ${label.toLowerCase()}`
        : text.replace(`${key}=`, `${label} = `);
  return text;
}

function draw() {
  const job = state.job;
  const shown = { id: job?.id, moments: job?.moments ?? [], open: Boolean(job?.can_steer) };
  if (same(shown, drawn)) return;
  drawn = shown;
  const list = find("moments");
  find("no-moments").hidden = shown.moments.length > 0;
  list.replaceChildren(
    ...shown.moments.map((moment) =>
      el(
        "li",
        {},
        el("span", { class: "number" }, `Step ${moment.step}`),
        el("span", { class: "reason" }, reason(moment.reason)),
        button(
          "Go back",
          () => shown.open && attempt(`/api/jobs/${job.id}/undo`, { moment: moment.number }),
          {
            "aria-label": `Go back to step ${moment.step}, ${reason(moment.reason)}`,
            "aria-disabled": String(!shown.open),
          },
        ),
      ),
    ),
  );
  list.scrollTop = list.scrollHeight;
}

export function startMoments() {
  on("job", draw);
  draw();
}
