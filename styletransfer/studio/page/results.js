// The results in a row; buttons for the result that is shown; and details, with the command line of
// the run whose settings the panel shows, or of the panel's settings.
import { Button, debounced, find, Sure, Thumbnail } from "./dom.js";
import { refreshRuns } from "./live.js";
import { html, useMemo, useState } from "./preact.js";
import { attempt, changed, fail, on, picture, pictureUrl, post, runUrl, same, scaled } from "./store.js";
import { settings, show, state, subject, titleOf, value } from "./store.js";
import { enlarge, fileOf, statusText } from "./transport.js";

const FORMATS = { png: "PNG", jpeg: "JPEG", webp: "WebP", tiff: "TIFF, 16 bit" };
const CHANGED = "Settings were changed on the way: this command paints the last settings from the start";
let checks = 0;

const dated = ({ written }, style) =>
  new Date(1000 * written).toLocaleString([], { dateStyle: "medium", timeStyle: style });

/** The address of a run's picture, or of its photograph if it has no picture yet. */
function pictureOf(run) {
  const content = value("content", run.settings);
  const isThere = (run.width || run.is_preview) && run.status !== "running";
  if (isThere) return runUrl(run.id, "picture", `side=320&seconds=${run.seconds}`);
  return content && pictureUrl(content, 320);
}

function Card({ run, isShown }) {
  const [title, src] = [titleOf(run), pictureOf(run)];
  const early = run.status === "running" ? "painting" : run.status;
  const word = run.status === "finished" ? run.kind === "sketch" && "sketch" : early;
  return html`<li><button type="button" class="thumb" aria-label="${title}, ${run.status}"
      title=${title} aria-current=${String(isShown)} onclick=${() => show(run.id)}>
      ${src ? html`<${Thumbnail} src=${src} />` : html`<i>no picture</i>`}
      ${word && html`<span class="early">${word}</span>`}</button>
    <span class="number muted">${run.width && `${run.width} × ${run.height}`}<br />${dated(run)}</span>
    </li>`;
}

async function remove(run) {
  const answer = await attempt(`/api/runs/${run.id}/delete`);
  if (!answer) return;
  show(null);
  await refreshRuns();
  const kept = answer.kept.join(", ");
  if (kept) fail({ message: `The result is deleted. Its folder keeps other files: ${kept}.` });
  find("results-title").focus();
}

function Result({ run }) {
  const size = run.width ? [`${run.width} × ${run.height} pixels`] : [];
  const [now, photo] = [Math.max(run.width, run.height), picture(value("content", run.settings))];
  const larger = photo ? Math.min(2 * now, Math.max(photo.width, photo.height)) : 0;
  const formats = run.kind === "film" ? { mp4: "Film" } : FORMATS;
  const links = Object.entries(formats).map(([format, name]) =>
    html`<a class="button" ...${fileOf(run, format)}>${name}</a>`);
  return html`<p class="facts">${[...size, statusText(run), dated(run, "short")].join(" · ")}</p>
    <div class="actions" role="group" aria-label="This result">
    ${run.width && larger > now && html`<${Button} id="larger" title="Paints it again"
      onclick=${() => enlarge(run, larger)}>Larger: ${scaled(photo, larger / Math.max(photo.width, photo.height)).join(" × ")}<//>`}
    ${run.width && html`<span class="muted">Download</span>${links}`}
    <${Sure} text="Delete" action=${() => remove(run)} /></div>`;
}

/** Let the server check the panel's settings; store their cost and command line in the state. */
const check = debounced(async () => {
  const number = ++checks;
  const answer = await post("/api/check", { settings: settings() }).catch((refusal) => refusal);
  if (number !== checks) return;
  const { message, command = state.cost.command } = answer;
  state.cost = message ? { command } : answer;
  if (message) fail(answer);
  changed();
}, 300);

/** What the command of a run, or of the panel's settings, makes. */
function aboutCommand(run) {
  if (run?.is_steered) return CHANGED;
  const isPart = run?.kind === "film" && run.status === "stopped";
  return isPart ? "This command paints the film to its end" : "This command makes the same picture";
}

function Details() {
  const run = subject();
  const command = run?.command ?? state.cost.command ?? "";
  const [copied, setCopied] = useState({});
  const copy = async () => {
    getSelection().selectAllChildren(find("details").querySelector("pre")); // to copy by hand
    const done = navigator.clipboard?.writeText(command).then(() => "Copied", () => "Selected");
    setCopied({ command, word: (await done) ?? "Selected" });
  };
  return html`<p id="whose" class="muted">${aboutCommand(run)}</p>
    <pre tabindex="0" aria-label="command line">${command}</pre>
    <${Button} id="copy" onclick=${copy}>${copied.command === command ? copied.word : "Copy"}<//>`;
}

export function Desk() {
  const { runs, view, pictures } = state;
  const cards = useMemo(
    () => runs.map((run) => html`<${Card} key=${run.id} run=${run} isShown=${run.id === view} />`),
    [runs, view, pictures.length],
  );
  const run = runs.find((one) => one.id === view && one.status !== "running");
  return html`<section class="card" aria-labelledby="results-title">
    <h2 id="results-title" tabindex="-1">Results</h2>
    <ul id="strip" class="strip">${cards.length ? cards : html`<li class="muted">Nothing painted yet.</li>`}
    </ul><div id="result">${run && html`<${Result} run=${run} />`}</div></section>
    <details id="details" class="card"><summary>Details</summary><${Details} /></details>`;
}

export function startResults() {
  let seen = null; // a new run changes the estimate of the time
  on(() => {
    const now = [settings(), state.runs.length, state.contacts];
    if (!same(now, seen)) check((seen = now));
  });
}
