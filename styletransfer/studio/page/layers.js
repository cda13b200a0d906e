// The two things that can be brushed, regions and protection, and how they become settings.
import { pictureUrl, upload } from "./http.js";
import { BRUSHED } from "./picker.js";
import { Raster, rasterSize } from "./raster.js";
import { change, fail, list, picture, state, value } from "./store.js";

// CSS names, as region_styles knows them, with their colours; the first is what is not brushed.
export const REGIONS = [
  ["blue", [0, 0, 255]],
  ["red", [255, 0, 0]],
  ["gold", [255, 215, 0]],
  ["green", [0, 128, 0]],
  ["orchid", [218, 112, 214]],
  ["aqua", [0, 255, 255]],
];

const [SEEN, RUBY] = [150, [230, 0, 60]]; // of 255, how much an overlay covers; of masks its colour

const distance = (one, other) =>
  Math.max(...one.map((level, channel) => Math.abs(level - other[channel])));

function nearest(...color) {
  const distances = REGIONS.map(([, other]) => distance(color, other));
  return distances.indexOf(Math.min(...distances));
}

/** For each key: its file's name, what its colours mean in the file, and how they are shown. */
const KINDS = {
  content_regions: {
    name: BRUSHED.regions,
    written: (byte) => [...(REGIONS[byte] ?? REGIONS[0])[1], 255],
    seen: (byte) => (byte ? [...(REGIONS[byte] ?? REGIONS[0])[1], SEEN] : [0, 0, 0, 0]),
    read: nearest,
  },
  protect: {
    name: BRUSHED.protection,
    written: (byte) => [byte, byte, byte, 255],
    seen: (byte) => [...RUBY, (byte * SEEN) / 255],
    read: (red) => red,
  },
};

const rasters = new Map(); // key -> its raster
const loaded = new Map(); // key -> the id of the picture that the raster is

export const raster = (key) => rasters.get(key);
export const seen = (key) => KINDS[key].seen;

/** Make the raster what the settings say. */
export async function load(key) {
  const content = picture(value("content"));
  const id = value(key);
  const [width, height] = rasterSize(content ?? { width: 1, height: 1 });
  const old = rasters.get(key);
  if (old && loaded.get(key) === id && old.width === width && old.height === height) return;
  const made = new Raster(width, height, key === "protect");
  rasters.set(key, made);
  loaded.set(key, id);
  if (id) await made.read(pictureUrl(id, 1024), KINDS[key].read).catch(() => {});
}

/** Which style paints which region; `wanted` is one choice that may be new. */
export function regionStyles(wanted = {}) {
  const styles = list(value("style")).length;
  const chosen = { ...value("region_styles"), ...wanted };
  const present = rasters.get("content_regions")?.present ?? [];
  if (styles < 2) return {};
  return Object.fromEntries(
    present.map((number) => {
      const name = REGIONS[number][0];
      return [
        name,
        chosen[name] >= 1 && chosen[name] <= styles ? chosen[name] : 1 + (number % styles),
      ];
    }),
  );
}

const saving = new Map(); // key -> number of the latest save

/** Upload what was brushed, and set it. */
export async function save(key) {
  const number = (saving.get(key) ?? 0) + 1;
  saving.set(key, number);
  const made = rasters.get(key);
  let id = null;
  try {
    if (!made.empty) {
      const added = await upload(KINDS[key].name, await made.png(KINDS[key].written));
      id = added.id;
      if (!picture(id)) state.pictures.push({ kind: "upload", ...added, name: KINDS[key].name });
    }
  } catch (refusal) {
    return fail(refusal, key);
  }
  if (saving.get(key) !== number || rasters.get(key) !== made) return null;
  loaded.set(key, id);
  return change(
    key === "protect"
      ? { protect: id }
      : { content_regions: id, region_styles: id ? regionStyles() : {} },
  );
}
