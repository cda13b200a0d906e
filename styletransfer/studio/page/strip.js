// The frames of a film: one is looked for and saved, painted elsewhere, and added at its time.
import { Button, Files } from "./dom.js";
import { send } from "./picker.js";
import { html, useState } from "./preact.js";
import { change, fail, fallback, list, pictureName, pictureUrl, value } from "./store.js";

const TIME = /.*?([\d.]*\d) ?s\b/; // in a file's name, such as "walk 4.8s.png"
let moment = "0"; // time in seconds, as text, of the frame that the player shows

/** The painted frames of the panel's film: each has a `painting`, and a `frame` such as ID:4.8s. */
const painted = () =>
  list(value("style_source")).map((frame, at) => ({ frame, painting: list(value("style"))[at] }));
const timeOf = ({ frame }) => Number.parseFloat(frame.split(":")[1] ?? 0);

function put(frames) {
  const all = frames.sort((one, other) => timeOf(one) - timeOf(other));
  const [style, style_source] = ["painting", "frame"].map((part) => all.map((one) => one[part]));
  return change(all.length ? { style, style_source, style_weights: [] }
    : { style: fallback("style"), style_source: null });
}

/** Upload paintings, each of the frame at the time in its file's name, else of the frame that the
 * player shows; return whether all could be added. */
export async function addFrames(files) {
  const [film, shown] = [value("content"), moment];
  const { added, refused } = await send(files, "style");
  const made = [...added.values()].map(({ id, sent }) =>
    ({ painting: id, frame: `${film}:${sent.match(TIME)?.[1] ?? shown}s` }));
  const isKept = ({ frame }) => made.every((one) => one.frame !== frame);
  if (made.length) put([...painted().filter(isKept), ...made]);
  refused.forEach((refusal) => fail(refusal, "style_source"));
  return !refused.length;
}

export function Strip({ id }) {
  const film = value("content");
  const [at, setAt] = useState(moment);
  const look = ({ target: { currentTime, duration } }) =>
    setAt((moment = String(Number(Math.max(0, Math.min(currentTime, duration - 0.01)).toFixed(3)))));
  const save = { href: `/api/pictures/${film}/frame?at=${at}`, download: `${pictureName(film)} ${at}s.png` };
  const tiles = painted().map((one) => html`<div class="tile" key=${one.frame}>
    <span class="frame"><img src=${pictureUrl(one.painting, 320)} alt="" /></span>
    <span class="caption">${timeOf(one)} s</span>
    <${Button} aria-label="Remove the frame at ${timeOf(one)} s"
      onclick=${() => put(painted().filter(({ frame }) => frame !== one.frame))}>Remove<//></div>`);
  const field = { multiple: true, accept: "image/*", "aria-label": "Painted frames" };
  return html`<div class="film" data-picker="style_source" id=${id}>
    <video controls muted preload="metadata" src="/api/pictures/${film}/film" aria-label="Frames"
      ontimeupdate=${look} onseeked=${look}></video>
    <div class="actions"><a class="button" ...${save}>Save this frame</a>
      <${Files} enter=${addFrames} field=${field}>Add it painted<//></div>
    <div class="tiles">${tiles}</div></div>`;
}
