// What the brush draws, regions and protection: as rasters and as settings.
import { change, drawnFor, fail, list, picture, pictureUrl, scaled, upload, value } from "./store.js";

// Names of regions, as in region_styles, with their colours; the first is what is not drawn.
export const REGIONS = [
  ["blue", [0, 0, 255]],
  ["red", [255, 0, 0]],
  ["gold", [255, 215, 0]],
  ["green", [0, 128, 0]],
  ["orchid", [218, 112, 214]],
  ["aqua", [0, 255, 255]],
];
const SIDE = 1024; // largest longer side of a raster in pixels
const [SEEN, RUBY] = [150, [230, 0, 60]]; // alpha of an overlay, of 255; colour of a mask's overlay

function nearest(...color) {
  const away = ([, other]) => Math.max(...color.map((level, at) => Math.abs(level - other[at])));
  const distances = REGIONS.map(away);
  return distances.indexOf(Math.min(...distances));
}

const regionColor = (byte) => (REGIONS[byte] ?? REGIONS[0])[1];

/** Key -> how bytes of its raster are written to a file, shown on the page, and read again. */
const KINDS = {
  content_regions: {
    written: (byte) => [...regionColor(byte), 255],
    seen: (byte) => (byte ? [...regionColor(byte), SEEN] : [0, 0, 0, 0]),
    read: nearest,
  },
  protect: {
    soft: true, // bytes are a mask from 0 to 255 with soft edges, no numbers of regions
    written: (byte) => [byte, byte, byte, 255],
    seen: (byte) => [...RUBY, (byte * SEEN) / 255],
    read: (red) => red,
  },
};

/** What the brush has drawn: one byte for each pixel. `id` is its picture on the server; if it is
 * `unsaved`, that picture lacks the latest strokes. `styles` has the id of each region's style until
 * the strokes are saved, and the settings with them. */
class Raster {
  constructor({ key, width, height, id, bytes, unsaved = false, styles = {} }) {
    Object.assign(this, { key, width, height, ...KINDS[key], id, unsaved, styles: { ...styles } });
    this.bytes = bytes ?? new Uint8Array(width * height);
  }

  /** Draw with `value` on all pixels within `radius` pixels of the line between two places. */
  stroke(from, to, radius, value) {
    const feather = this.soft ? Math.max(1, radius * 0.2) : 0;
    const low = (one, other) => Math.max(0, Math.floor(Math.min(one, other) - radius - 1));
    const high = (one, other, most) =>
      Math.min(most, Math.ceil(Math.max(one, other) + radius + 1));
    const [left, top] = [low(from.x, to.x), low(from.y, to.y)];
    const [right, bottom] = [high(from.x, to.x, this.width), high(from.y, to.y, this.height)];
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = dx * dx + dy * dy || 1;
    for (let y = top; y < bottom; y++)
      for (let x = left; x < right; x++) {
        const [px, py] = [x + 0.5 - from.x, y + 0.5 - from.y];
        const along = Math.min(1, Math.max(0, (px * dx + py * dy) / length));
        const distance = Math.hypot(px - along * dx, py - along * dy);
        if (distance <= radius)
          this.#touch(y * this.width + x, value, (radius - distance) / feather);
      }
  }

  #touch(at, value, inside) {
    const strength = 255 * Math.min(1, inside);
    if (!this.soft) this.bytes[at] = value;
    else if (value) this.bytes[at] = Math.max(this.bytes[at], strength);
    else this.bytes[at] = Math.min(this.bytes[at], 255 - strength);
  }

  /** Draw the raster on a canvas of its size; `color(byte)` is [red, green, blue, alpha]. */
  draw(canvas, color = this.seen) {
    const image = new ImageData(this.width, this.height);
    const bytes = Uint8ClampedArray.from([...Array(256).keys()].flatMap(color));
    const colors = new Uint32Array(bytes.buffer);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < pixels.length; at++) pixels[at] = colors[this.bytes[at]];
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  /** Read the raster from a picture. */
  async load(url) {
    const image = Object.assign(new Image(), { src: url });
    await image.decode();
    const context = new OffscreenCanvas(this.width, this.height).getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, this.width, this.height);
    const { data } = context.getImageData(0, 0, this.width, this.height);
    this.bytes = this.bytes.map((_, at) => this.read(...data.subarray(4 * at, 4 * at + 3)));
  }

  /** Return the raster as a PNG file. */
  png() {
    const canvas = new OffscreenCanvas(this.width, this.height);
    this.draw(canvas, this.written);
    return canvas.convertToBlob({ type: "image/png" });
  }
}

/** The keys that the brush draws. */
export const LAYERS = Object.keys(KINDS);
const rasters = new Map(); // key -> its raster

export const raster = (key) => rasters.get(key);

/** All rasters by key, for `putLayers`. */
export const layers = () => new Map(rasters);

/** Put rasters back in the place of those that are there now. */
export function putLayers(some) {
  for (const [key, one] of some) {
    rasters.set(key, one);
    if (one.unsaved) keep(key);
  }
}

/** Replace a raster by a copy, on which the next stroke is drawn; return the copy. */
export function copied(key) {
  const old = raster(key);
  const made = new Raster({ ...old, bytes: old.bytes.slice(), unsaved: true });
  rasters.set(key, made);
  return made;
}

/** Load the raster of the settings in the content's aspect ratio; return false if it is loaded. */
export async function load(key) {
  const content = picture(value("content")) ?? { width: 1, height: 1 };
  const id = drawnFor(key);
  const fitting = Math.min(1, SIDE / Math.max(content.width, content.height));
  const [width, height] = scaled(content, fitting);
  const old = raster(key);
  if (old?.id === id && old.width === width && old.height === height) return false;
  const made = new Raster({ key, width, height, id });
  rasters.set(key, made);
  if (id) await made.load(pictureUrl(id, SIDE)).catch(() => {});
  return true;
}

// A style for which there was no region yet when it was tapped under the brush: its `id`, and the
// `region` in which the brush draws it. It is one of the chosen styles from its first stroke on.
let taken = null;

/** The ids of the styles that the brush can draw with: the chosen ones, and the one that is taken. */
export const palette = () => [...new Set([...list(value("style")), ...(taken ? [taken.id] : [])])];

/** Return the region in which the brush draws a style; undefined if there is none. */
export const regionOf = (id) =>
  [...REGIONS.keys()].find((region) => palette()[styleOf(region) - 1] === id);

/** Take a style, if it has no region, with a region that is not drawn; return false if all are. */
export function take(id) {
  if (regionOf(id) !== undefined) return true;
  const { bytes } = raster("content_regions");
  const wanted = [list(value("style")).length, ...REGIONS.keys()];
  const region = wanted.find((one) => one && one in REGIONS && !bytes.includes(one));
  if (region) taken = { id, region };
  return Boolean(region);
}

/** Note the styles of all regions that are drawn in a raster; choose the style that is taken if it
 * is one of them. */
export function settle({ bytes, styles }) {
  const drawn = new Set(bytes);
  for (const region of drawn) styles[region] = palette()[styleOf(region) - 1];
  if (drawn.has(taken?.region)) change({ style: palette() }, false);
}

/** Forget the style that is taken. */
export const drop = () => void (taken = null);

/** Forget it if its region is drawn: an undo has brought back strokes in another style. */
export const yieldRegion = () => raster("content_regions").bytes.includes(taken?.region) && drop();

/** Return the number of the style of a region, from 1. */
export function styleOf(region) {
  const drawn = region === taken?.region ? taken.id : raster("content_regions")?.styles[region];
  if (palette().includes(drawn)) return palette().indexOf(drawn) + 1;
  const styles = palette().length;
  const chosen = value("region_styles")?.[REGIONS[region]?.[0]];
  return chosen >= 1 && chosen <= styles ? chosen : 1 + (region % styles);
}

/** Return name of a region -> number of its style, for all regions that occur. */
export function regionStyles() {
  const present = list(value("style")).length < 2 ? [] : [...new Set(raster("content_regions").bytes)];
  return Object.fromEntries(present.sort().map((region) => [REGIONS[region][0], styleOf(region)]));
}

let saving = Promise.resolve();

/** Upload what was drawn, and put its id into the settings, unless it is no longer there. */
async function save(key, drawn) {
  let id = null;
  if (raster(key) !== drawn) return null;
  try {
    if (drawn.bytes.some(Boolean))
      ({ id } = await upload(`drawn ${key}.png`, await drawn.png(), key));
  } catch (refusal) {
    return fail(refusal, key);
  }
  if (raster(key) !== drawn) return null;
  const regions = { content_regions: id, region_styles: id ? regionStyles() : {} };
  const saved = new Raster({ ...drawn, id, unsaved: false, styles: {} }); // the old one is history
  rasters.set(key, saved);
  return change(key === "protect" ? { protect: id } : regions, false);
}

/** Save a layer once those before it are saved, unless another stroke has begun until then. */
export function keep(key) {
  const drawn = raster(key);
  saving = saving.then(() => save(key, drawn));
}

/** Save what was drawn, also if that failed before; return whether all of it is saved. */
export async function flushBrush() {
  LAYERS.filter((key) => raster(key)?.unsaved).forEach(keep);
  await saving;
  return !LAYERS.some((key) => raster(key)?.unsaved);
}
