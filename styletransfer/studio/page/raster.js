// What a brush has left on a picture: one byte for each pixel, with its strokes to undo.

const KEPT = 20; // strokes that can be undone

/** Return the size of a raster for a picture: of its aspect ratio, 1024 pixels at most. */
export function rasterSize({ width, height }) {
  const scale = Math.min(1, 1024 / Math.max(width, height));
  return [width, height].map((side) => Math.max(1, Math.round(side * scale)));
}

export class Raster {
  /** `soft` rasters are masks from 0 to 255 with soft edges; others hold numbers of regions. */
  constructor(width, height, soft) {
    Object.assign(this, { width, height, soft, bytes: new Uint8Array(width * height), past: [] });
  }

  /** Keep what there is, to come back to it by `undo`. */
  remember() {
    this.past.push(this.bytes.slice());
    if (this.past.length > KEPT) this.past.shift();
  }

  undo() {
    if (this.past.length) this.bytes = this.past.pop();
  }

  fill(value) {
    this.remember();
    this.bytes.fill(value);
  }

  /** Swap what is covered by `value` and what is not. */
  invert(value) {
    this.remember();
    this.bytes = this.bytes.map((byte) =>
      this.soft ? 255 - byte : byte === value ? 0 : byte === 0 ? value : byte,
    );
  }

  get empty() {
    return this.bytes.every((byte) => byte === 0);
  }

  /** Return the numbers that occur, in order. */
  get present() {
    return [...new Set(this.bytes)].sort((one, other) => one - other);
  }

  /**
   * Cover all within `radius` pixels of the line between two places.
   * Returns the box [x, y, width, height] that may have changed.
   */
  stroke(from, to, radius, value) {
    const feather = this.soft ? Math.max(1, radius * 0.2) : 0;
    const reach = radius + 1;
    const left = Math.max(0, Math.floor(Math.min(from.x, to.x) - reach));
    const top = Math.max(0, Math.floor(Math.min(from.y, to.y) - reach));
    const right = Math.min(this.width, Math.ceil(Math.max(from.x, to.x) + reach));
    const bottom = Math.min(this.height, Math.ceil(Math.max(from.y, to.y) + reach));
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
    return [left, top, Math.max(0, right - left), Math.max(0, bottom - top)];
  }

  #touch(at, value, inside) {
    if (!this.soft) this.bytes[at] = value;
    else {
      const strength = 255 * Math.min(1, inside);
      this.bytes[at] = value
        ? Math.max(this.bytes[at], strength)
        : Math.min(this.bytes[at], 255 - strength);
    }
  }

  /** Draw a part of it; `color(byte)` is [red, green, blue, alpha]. */
  draw(context, color, [left, top, width, height] = [0, 0, this.width, this.height]) {
    if (!width || !height) return;
    const image = context.createImageData(width, height);
    const colors = Array.from({ length: 256 }, (_, byte) => color(byte));
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++)
        image.data.set(colors[this.bytes[(top + y) * this.width + left + x]], 4 * (y * width + x));
    context.putImageData(image, left, top);
  }

  /** Take over a picture; `byte(red, green, blue)` says what a colour means. */
  async read(url, byte) {
    const image = new Image();
    image.src = url;
    await image.decode();
    const context = new OffscreenCanvas(this.width, this.height).getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, this.width, this.height);
    const { data } = context.getImageData(0, 0, this.width, this.height);
    this.bytes = this.bytes.map((_, at) => byte(data[4 * at], data[4 * at + 1], data[4 * at + 2]));
  }

  /** Return it as a PNG file. */
  png(color) {
    const canvas = new OffscreenCanvas(this.width, this.height);
    this.draw(canvas.getContext("2d"), color);
    return canvas.convertToBlob({ type: "image/png" });
  }
}
