// The sketch of settings: a picture in each style, and the photograph, composed on the canvas by
// what the brush has drawn. A stroke needs no new picture, so it is seen at once.
import { brushIsOpen } from "./brush.js";
import { palette, raster, styleOf } from "./layers.js";
import { isPair, list, same, sketchUrl, value } from "./store.js";

// Masks are reduced to this longer side in pixels, so that their edges are soft, as in the Python
// file networks/apply/division.py, which composes sketches that are kept.
const SOFT = 256;

/** What is drawn for a key of settings; null if that is nothing, or is not loaded. */
function drawn(key, settings) {
  const layer = value(key, settings) === value(key) ? raster(key) : null;
  return layer?.bytes.some(Boolean) ? layer : null;
}

/** Return the parts of the sketch of settings, from the lowest to the highest: the address `url` of
 * a picture, and the `mask` where it is shown: a raster, and the alpha of each of its bytes. There
 * is a part for each style once the brush may draw with it. */
export function sketchParts(settings, photo, side) {
  if (isPair(settings)) return [{ url: photo }]; // no sketch of it would be like the painting
  const chosen = list(value("style", settings));
  const styles = same(chosen, list(value("style"))) ? palette() : chosen;
  const regions = styles.length > 1 && drawn("content_regions", settings);
  const protection = drawn("protect", settings);
  const inStyle = (style) => sketchUrl({ ...settings, style: [style], style_weights: [] }, side);
  const layer = raster("content_regions");
  const [first, ...others] = styles.map((style, at) =>
    ({ url: inStyle(style), mask: { layer, alpha: (byte) => 255 * (styleOf(byte) === at + 1) } }));
  const parts = [regions ? { url: first.url } : { url: sketchUrl(settings, side) }];
  if (regions) parts.push(...others);
  else if (styles.length > 1 && brushIsOpen())
    parts.push({ ...first, mask: { layer, alpha: () => 0 } }, ...others); // there before a stroke
  if (protection) parts.push({ url: photo, mask: { layer: protection, alpha: (byte) => byte } });
  return parts;
}

/** Draw pictures over each other on a canvas, which gets the size of the first one. Each is an
 * `image`; it is shown in its `mask`, if it has one, and with its `opacity`. */
export function compose(canvas, parts) {
  const { naturalWidth: width, naturalHeight: height } = parts[0].image;
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  for (const { image, mask, opacity = 1 } of parts) {
    context.globalAlpha = opacity;
    context.drawImage(mask ? masked(image, mask, width, height) : image, 0, 0, width, height);
  }
}

function masked(image, { layer, alpha }, width, height) {
  const factor = Math.min(1, SOFT / Math.max(layer.width, layer.height));
  const sizes = [[layer.width, layer.height], [layer.width * factor, layer.height * factor]];
  const [full, small, made] = [...sizes, [width, height]].map((size) => new OffscreenCanvas(...size));
  layer.draw(full, (byte) => [0, 0, 0, alpha(byte)]);
  const over = (canvas, picture, how = "source-over") => {
    const context = canvas.getContext("2d");
    Object.assign(context, { globalCompositeOperation: how, imageSmoothingQuality: "high" });
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  };
  over(small, full);
  over(made, small);
  over(made, image, "source-in");
  return made;
}
