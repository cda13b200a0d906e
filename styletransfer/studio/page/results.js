// Past results as a strip; what can be done with the one that is shown; and its details, with the
// command line of the panel's settings.
import { busy, button, clicked, debounced, el, find, refill, sure, thumbnail } from "./dom.js";
import { unlessSame } from "./dom.js";
import { refreshRuns } from "./live.js";
import { attempt, fail, on, pictureUrl, post, runUrl, settings, show } from "./store.js";
import { state, subject, titleOf, value } from "./store.js";
import { clock, statusText } from "./transport.js";

const FORMATS = { png: "PNG", jpeg: "JPEG", webp: "WebP", tiff: "TIFF, 16 bit" };
const line = find("details").querySelector("pre");
let checks = 0;
let formCommand = "";

const dated = ({ written }, style) =>
  new Date(1000 * written).toLocaleString([], { dateStyle: "medium", timeStyle: style });

/** The picture of a run; what is not finished has none to show yet. */
function pictureOf(run) {
  const content = value("content", run.settings);
  if (run.width && run.status !== "running")
    return thumbnail(runUrl(run.id, "picture", `side=320&seconds=${run.seconds}`));
  return content ? thumbnail(pictureUrl(content, 320)) : el("i", "no picture");
}

function card(run) {
  const title = titleOf(run);
  const early = el("span.early", run.status === "running" ? "painting" : run.status);
  const parts = [pictureOf(run), run.status === "finished" ? null : early];
  const properties = {
    class: "thumb",
    "data-focus": run.id,
    "aria-label": `${title}, ${run.status}`,
    title,
    "aria-current": String(run.id === state.view),
  };
  const size = run.width ? `${run.width} × ${run.height}` : "";
  const under = el("span.number.muted", size, el("br"), dated(run));
  return el("li", button(parts, () => show(run.id), properties), under);
}

const drawStrip = unlessSame((runs) => {
  const none = el("li.muted", "Nothing painted yet.");
  refill(find("strip"), runs.length ? runs.map(card) : [none]);
});

function facts(run) {
  const size = run.width ? [`${run.width} × ${run.height} pixels`] : [];
  return el("p.facts", [...size, statusText(run), dated(run, "short")].join(" · "));
}

function downloads(run) {
  const film = { href: runUrl(run.id, "film", ""), download: `${titleOf(run)}.mp4` };
  const links = Object.entries(FORMATS).map(([format, name]) => {
    const href = runUrl(run.id, "download", `format=${format}`);
    return el("a.button", { href, download: `${titleOf(run)}.${format}` }, name);
  });
  const group = { role: "group", "aria-label": "Download" };
  if (run.is_film) links.unshift(el("a.button", film, "Film"));
  const all = run.width ? [el("span.muted", "Download"), links].flat() : [];
  return el("div.actions", group, all, sure("Delete", () => remove(run)));
}

async function remove(run) {
  const answer = await attempt(`/api/runs/${run.id}/delete`);
  if (!answer) return;
  show(null);
  await refreshRuns();
  const kept = answer.kept.join(", ");
  if (kept) fail({ message: `The run is deleted; its folder keeps what is not the studio's: ${kept}.` });
  find("results-title").focus();
}

const drawResult = unlessSame((run) => {
  refill(find("result"), run ? [facts(run), downloads(run)] : []);
});

/** Ask for the form's command line, which checks its settings, too; and what they cost. */
async function check() {
  const number = ++checks;
  const asked = post("/api/check", { settings: settings() });
  const answer = busy(find("cost"), asked.catch((refusal) => refusal));
  const { command, message, key, ...cost } = await answer;
  if (number !== checks) return;
  if (message) fail({ message, key });
  else formCommand = command;
  const time = cost.seconds ? `, about ${clock(cost.seconds)}` : "";
  const costs = `${cost.width} × ${cost.height} pixels, about ${cost.memory}${time}`;
  find("cost").textContent = cost.width ? costs : "";
  drawCommand();
}

function drawCommand() {
  const run = subject();
  const command = run?.command ?? formCommand;
  const changed = "It was changed while it was painted: this paints its last settings from the start";
  find("whose").textContent = run?.is_steered ? changed : "This command makes the same picture";
  if (line.textContent === command) return;
  line.textContent = command;
  find("copy").textContent = "Copy";
}

async function copy() {
  getSelection().selectAllChildren(line); // to copy by hand where there is no clipboard
  const copied = navigator.clipboard?.writeText(line.textContent).then(() => true, () => false);
  find("copy").textContent = (await copied) ? "Copied" : "Selected";
}

function draw() {
  drawStrip(state.runs, state.view, state.pictures.length);
  drawResult(state.runs.find((run) => run.id === state.view && run.status !== "running"));
  drawCommand();
}

export function startResults() {
  on("runs view running pictures", draw);
  clicked({ copy });
  on("settings runs", debounced(check, 300)); // a run that has ended tells the time that one takes
  check();
}
