// What can be done with the result that is shown: download, settings, going on, removing.
import { button, el, find } from "./dom.js";
import { runUrl } from "./http.js";
import { refreshRuns } from "./live.js";
import { adopt, attempt, list, on, pictureName, show, shownRun, state } from "./store.js";
import { clock } from "./transport.js";

const FORMATS = { png: "PNG", jpeg: "JPEG", webp: "WebP", tiff: "TIFF, 16 bit" };

function inWords({ kind }, given) {
  if (["picture", "pictures"].includes(kind)) return list(given).map(pictureName).join(" + ");
  if (["regions", "mask"].includes(kind)) return given ? "brushed" : "none";
  if (kind === "mapping")
    return Object.entries(given)
      .map((pair) => pair.join(" "))
      .join(", ");
  return list(given).join(", ").replaceAll("_", " ");
}

/** What differs from the defaults, in the form's words. */
function differences(settings) {
  return Object.entries(settings)
    .filter(([key]) => state.controls.has(key))
    .flatMap(([key, given]) => {
      const control = state.controls.get(key);
      return [el("dt", {}, control.label), el("dd", {}, inWords(control, given))];
    });
}

async function goOn(run) {
  if (await attempt(`/api/runs/${run.id}/resume`)) show("job");
}

/** Deleting is asked for twice, in the same place. */
function remove(run) {
  const ask = button(
    "Delete",
    () => {
      if (ask.dataset.sure !== "yes") {
        ask.dataset.sure = "yes";
        ask.textContent = "Delete for good?";
        return null;
      }
      return attempt(`/api/runs/${run.id}/delete`).then((done) => {
        if (!done) return null;
        show("content");
        find("results-title").scrollIntoView({ block: "nearest" });
        return refreshRuns();
      });
    },
    { class: "quiet" },
  );
  ask.addEventListener("blur", () => {
    delete ask.dataset.sure;
    ask.textContent = "Delete";
  });
  return ask;
}

function facts(run) {
  const parts = [run.status + (run.seconds ? ` after ${clock(run.seconds)}` : "")];
  if (run.width) parts.unshift(`${run.width} × ${run.height} pixels`);
  return el("p", { class: "facts" }, parts.join(" · "));
}

function downloads(run) {
  const links = Object.entries(FORMATS).map(([format, name]) => {
    const href = runUrl(run.id, "download", `format=${format}`);
    return el("a", { class: "button", href, download: "" }, name);
  });
  const group = { class: "actions", role: "group", "aria-label": "Download" };
  return el("div", group, el("span", { class: "muted" }, "Download"), ...links);
}

function actions(run) {
  const again = button("Use these settings", () => adopt(run.settings));
  const stopped = run.has_checkpoint && run.status !== "finished";
  const further = stopped ? button("Go on painting", () => goOn(run)) : null;
  return el("div", { class: "actions" }, again, further, remove(run));
}

function settings(run) {
  const found = differences(run.settings);
  if (found.length) return el("dl", { class: "settings" }, ...found);
  return el("p", { class: "muted" }, "Painted with the default settings.");
}

function draw() {
  const run = state.runs.find(({ id }) => id === shownRun());
  const box = find("result");
  const version = run && !["running", "queued"].includes(run.status) ? JSON.stringify(run) : "";
  if (box.dataset.run === version) return;
  box.dataset.run = version;
  const parts = version
    ? [facts(run), run.width && downloads(run), actions(run), settings(run)]
    : [];
  box.replaceChildren(...parts.filter(Boolean));
}

export const startResult = () => on("runs view job pictures", draw);
