// The frames of a film: one is looked for and saved, painted elsewhere, and added at its time. The
// frame that those painted so far fit worst is marked.
import { Button, Files } from "./dom.js";
import { send } from "./picker.js";
import { html, useRef } from "./preact.js";
import { change, changed, fail, fallback, list, pictureName, pictureUrl, same } from "./store.js";
import { state, value } from "./store.js";

const TIME = /.*?([\d.]*\d) ?s\b/; // in a file's name, such as "walk 4.8s.png"
let moment = "0"; // time in seconds, as text, of the frame that the player shows

/** The painted frames of the panel's film: each has a `painting`, and a `frame` such as ID:4.8s. */
const painted = () =>
  list(value("style_source")).map((frame, at) => ({ frame, painting: list(value("style"))[at] }));
const timeOf = ({ frame }) => Number.parseFloat(frame.split(":")[1] ?? 0);
const byTime = (one, other) => timeOf(one) - timeOf(other);
const frameUrl = (film, time) => `/api/pictures/${film}/frame?at=${time}`;

function put(frames) {
  const all = frames.sort(byTime);
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

/** The frame that the painted frames fit worst, as the newest film by them tells; a list of 0 or 1. */
function worst() {
  const isLike = ({ settings }) => ["content", "style_source"].every((key) =>
    same(list(value(key, settings)), list(value(key))));
  const time = state.runs.find(isLike)?.to_paint ?? null;
  return time === null ? [] : [{ frame: `${value("content")}:${time}s`, painting: null }];
}

/** A frame: a painted one can be removed; on one that is worth painting, `seek` is called. */
function Tile({ one, seek }) {
  const [time, film] = [timeOf(one), value("content")];
  const remove = () => put(painted().filter(({ frame }) => frame !== one.frame));
  const isNext = one.painting === null;
  const src = isNext ? frameUrl(film, time) : pictureUrl(one.painting, 320);
  const button = isNext
    ? html`<${Button} title="The painted frames fit this one worst: look at it, save it, and paint it"
        onclick=${() => seek(time)}>Fits worst<//>`
    : html`<${Button} aria-label="Remove the frame at ${time} s" onclick=${remove}>Remove<//>`;
  return html`<div class="tile ${isNext ? "next" : ""}">
    <span class="frame"><img src=${src} alt="" /></span><span class="caption">${time} s</span>
    ${button}</div>`;
}

export function Strip({ id }) {
  const [film, player] = [value("content"), useRef()];
  const look = ({ target: { currentTime, duration } }) =>
    changed((moment = String(Number(Math.max(0, Math.min(currentTime, duration - 0.01)).toFixed(3)))));
  const save = { href: frameUrl(film, moment), download: `${pictureName(film)} ${moment}s.png` };
  const seek = (time) => (player.current.currentTime = time);
  const all = [...painted(), ...worst()].sort(byTime);
  const tiles = all.map((one) => html`<${Tile} key=${one.frame} one=${one} seek=${seek} />`);
  const field = { multiple: true, accept: "image/*", "aria-label": "Painted frames" };
  return html`<div class="film" data-picker="style_source" id=${id}>
    <video ref=${player} controls muted preload="metadata" src="/api/pictures/${film}/film" aria-label="Frames"
      ontimeupdate=${look} onseeked=${look}></video>
    <div class="actions"><a class="button" ...${save}>Save this frame</a>
      <${Files} enter=${addFrames} field=${field}>Add it painted<//></div>
    <div class="tiles">${tiles}</div></div>`;
}
