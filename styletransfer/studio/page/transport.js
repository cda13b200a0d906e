// Buttons to paint, pause, continue, stop, save and share; the progress; and the queue.
import { alone, Button, busy, find, say } from "./dom.js";
import { planned } from "./easel.js";
import { remember, Steps } from "./history.js";
import { flushBrush } from "./layers.js";
import { filesAdded } from "./picker.js";
import { html } from "./preact.js";
import { active, aim, attempt, changed, forgive, isFilm, isPair, opacityOf, picture } from "./store.js";
import { prepare, runOf, runUrl, settings, show, state, stopped, subject, titleOf, value } from "./store.js";

const OTHERS = "Being painted by another program"; // or by a studio that ends just now
const inWords = (status) => (status === "running" ? OTHERS : status[0].toUpperCase() + status.slice(1));
let spoken = "";
let copied = null; // the id of the result that is in the clipboard

function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Send the panel's settings as a new run or `sketch`, or continue the run that they belong to. The
 * button with the id `asks` is busy meanwhile. */
const paint = alone(async (asks = "go", sketch = false) => {
  // The last stroke of the brush, and files that are being sent, are part of it.
  const [isDrawn, areAdded] = await busy(find(asks), Promise.all([flushBrush(), filesAdded()]));
  if (!isDrawn || !areAdded) return;
  const [begins, run] = [!active(), sketch ? null : stopped()];
  forgive();
  if (!run) prepare(settings());
  state.asked = begins && !run;
  const wanted = { settings: state.next, sketch };
  const posted = run ? attempt(`/api/runs/${run.id}/resume`) : attempt("/api/queue", wanted);
  const added = await busy(find(asks), posted);
  if (!added) state.asked = false;
  else if (begins) show(added.id);
  else say("The next picture waits for its turn.");
});

/** Paint a result again, with a longer side of `size` pixels. */
export function enlarge(run, size) {
  remember();
  prepare({ ...settings(run), size });
  aim("next");
  return paint("larger", run.kind === "sketch");
}

const act = (action) => attempt(`/api/queue/${state.running.id}/${action}`);

function go() {
  if (!active()) return paint();
  return act(state.running.status === "paused" ? "resume" : "pause");
}

/** The status of a run, or of what is shown without a run, in one line. */
export function statusText(run) {
  if (!run && isPair()) return "Not painted yet";
  if (!run && state.isBare) return `${isFilm() ? "First frame" : "Photograph"}, not sketched yet`;
  if (!run) return isFilm() ? "Sketch of the first frame" : "Sketch";
  const { step, steps, scale, scales, seconds, left, kind, error } = run;
  const word = inWords(run.status);
  if (run.status === "failed") return `${word}: ${error ?? "see the terminal"}`;
  if (error) return `${word}: ${error}`;
  if (kind === "sketch" && !active(run)) return "Sketch, kept";
  const unit = kind === "film" ? "frame" : "step";
  const units = step === 1 ? unit : `${unit}s`;
  if (!active(run)) return step ? `${word} after ${step} ${units}, ${clock(seconds)}` : word;
  if (run.status === "starting" || !step) return word; // a film has no frame at first
  const parts = [`${word}: ${unit} ${step} of ${steps}`];
  if (scales > 1) parts.push(`size ${scale} of ${scales}`);
  if (run.status === "painting" && left !== null) parts.push(`${clock(left)} left`);
  return parts.join(" · ");
}

/** The pixels of the run on the stage, or else of what the buttons make; beside them those of the
 * photograph, or of the next picture if the panel shows its settings. */
function pixelsText(run) {
  const photo = picture(value("content", run?.settings));
  if (!photo && !run?.width) return "";
  const sides = ([width, height]) => `${width} × ${height}`;
  const made = sides(run?.width ? [run.width, run.height] : planned(run?.settings ?? settings()));
  const isNext = run && !active() && run !== subject();
  const time = state.cost.seconds ? `, about ${clock(state.cost.seconds)}` : "";
  const other = isNext
    ? `; Paint makes ${sides(planned(settings()))}${time}`
    : photo && `; ${photo.frames ? "film" : "photograph"}: ${sides([photo.width, photo.height])}`;
  return `${made} pixels${run ? "" : time}${other ?? ""}`;
}

/** The address of a result's file as the stage shows it, and its name. */
export function fileOf(run, format = run.kind === "film" ? "mp4" : "png") {
  const asked = { format, ...(opacityOf(run) < 1 && { opacity: opacityOf(run) }) };
  const [part, query] = format === "mp4" ? ["film", ""] : ["download", new URLSearchParams(asked)];
  return { href: runUrl(run.id, part, query), download: `${titleOf(run)}.${format}` };
}

/** Share the file with other programs; if that fails, copy it; if that fails, open it. */
async function share(run) {
  const { href, download } = fileOf(run);
  const blob = fetch(href).then((answer) => answer.blob());
  try {
    if (navigator.canShare) {
      const file = new File([await blob], download, { type: (await blob).type });
      if (navigator.canShare({ files: [file] })) return await navigator.share({ files: [file] });
    }
    if (run.kind === "film") throw new Error("no film fits the clipboard");
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    copied = run.id;
    return changed(say("Copied"));
  } catch (error) {
    return error.name === "AbortError" ? null : open(runUrl(run.id, "picture", "side=2048"));
  }
}

/** The buttons for what is on the stage. */
function Actions() {
  const { running, view } = state;
  const run = runOf(view);
  const result = run && !active(run) && run.width ? run : null;
  const goesOn = active() ? running.status === "paused" : stopped();
  const idle = active() && !["painting", "paused"].includes(running.status);
  return html`<${Button} id="go" class="main" idle=${idle} onclick=${go}
      >${goesOn ? "Continue" : active() ? "Pause" : "Paint"}<//>
    ${active() && html`<${Button} id="stop" idle=${running.status === "stopping"}
      onclick=${() => act("stop")}>Stop<//>`}
    ${active() && !active(subject()) && html`<${Button} id="enqueue" onclick=${() => paint("enqueue")}
      title="Paints these settings after the picture that is being painted">Paint next<//>`}
    ${!active() && !run && !isFilm() && !isPair() && html`<${Button} id="keep" onclick=${() => paint("keep", true)}
      title="Makes a result of this sketch, as large as Size says">Add to Results<//>`}
    ${result && html`<a class="button" id="save" ...${fileOf(result)}>Save</a>
      <${Button} id="share" onclick=${() => share(result)}
        >${copied === result.id ? "Copied" : "Share"}<//>`}<${Steps} />`;
}

/** A line about a run that waits or is not on the stage, with buttons. */
function Line({ run, word, actions }) {
  const title = titleOf(run);
  const buttons = Object.entries(actions).map(([name, action]) =>
    html`<${Button} aria-label="${name} ${title}" onclick=${action}>${name}<//>`);
  return html`<li><span>${word}: ${title}</span>${buttons}</li>`;
}

function Queue() {
  const { running, view, queue } = state;
  const lines = queue.map((run, place) => {
    const ask = (action) => () => attempt(`/api/queue/${run.id}/${action}`);
    const actions = { ...(place && { Sooner: ask("hurry") }), Cancel: ask("cancel") };
    return html`<${Line} key=${run.id} run=${run} word="Waiting" actions=${actions} />`;
  });
  if (active() && view !== running.id) {
    const actions = { Show: () => show(running.id) };
    lines.unshift(html`<${Line} key="now" run=${running} word="Being painted" actions=${actions} />`);
  }
  return html`<ol id="queue" class="queue" aria-label="Waiting" hidden=${!lines.length}>${lines}</ol>`;
}

export function Transport() {
  const [run, { running, lost, uploads }] = [runOf(state.view), state];
  const { step, steps } = active(run) ? run : {};
  const done = steps ? step / steps : Number(run?.status === "finished");
  const text = lost ? "Not connected" : uploads[0] ? `Reading ${uploads[0].name}` : statusText(run);
  const words = running ? inWords(running.status) : "";
  if (running && spoken !== words) say((spoken = words)); // changes of status, not every step
  document.title = active() && running.steps ? `${words} · Studio` : "Studio";
  return html`<div class="progress" aria-hidden="true"><span id="done"
      style="transform: scaleX(${done})"></span></div>
    <div class="actions"><${Actions} />
    <div class="status number"><p id="status" title=${text}>${text}</p>
    <p id="pixels">${pixelsText(run)}</p></div></div>
    <${Queue} />`;
}
