// What the brush is dipped in: region or protection, its size, and what can be done at once.
import { button, el, find } from "./dom.js";
import { hand } from "./brush.js";
import { REGIONS, raster, regionStyles } from "./layers.js";
import { change, list, pictureName, value } from "./store.js";

const pressed = (control, is) => control.setAttribute("aria-pressed", String(is));

export function buildBrushBar({ take, whole, resize }) {
  let shown = 2; // regions that are offered
  const targets = {
    content_regions: button("Regions", () => take("content_regions")),
    protect: button("Protect", () => take("protect")),
  };
  const regions = el("div", { class: "regions", role: "group", "aria-label": "Region" });
  const note = el("p", { class: "muted" });
  const tools = [button("Paint", () => setErase(false)), button("Erase", () => setErase(true))];
  const size = el("input", {
    type: "range",
    min: 1,
    max: 50,
    step: 1,
    "aria-label": "Size of the brush",
  });
  size.addEventListener("input", () => resize(size.value / 100));
  const undo = button("Undo", () => whole((made) => made.undo()));
  const covering = () => (hand.key === "protect" ? 255 : hand.number);

  find("brushes").append(
    el(
      "div",
      { class: "segments", role: "group", "aria-label": "What is brushed" },
      ...Object.values(targets),
    ),
    regions,
    el("div", { class: "segments", role: "group", "aria-label": "Paint or erase" }, ...tools),
    el("label", { class: "size" }, "Size", size),
    undo,
    button("Fill", () => whole((made) => made.fill(covering()))),
    button("Invert", () => whole((made) => made.invert(covering()))),
    button("Clear", () => whole((made) => made.fill(0))),
    note,
  );

  function setErase(erase) {
    hand.erase = erase;
    refresh();
  }

  function region(number) {
    const [name, color] = REGIONS[number];
    const swatch = el("i", { class: "dab" });
    swatch.style.background = `rgb(${color.join(" ")})`;
    const chosen = value("region_styles")[name] ?? regionStyles()[name];
    const text = number === 0 ? "The rest" : `Region ${number}`;
    const styles = list(value("style"));
    const select = el(
      "select",
      { "aria-label": `Style of ${text.toLowerCase()}` },
      ...styles.map((style, place) =>
        el(
          "option",
          { value: place + 1, selected: chosen === place + 1 },
          `${place + 1} ${pictureName(style)}`,
        ),
      ),
    );
    select.addEventListener("change", () =>
      change({ region_styles: regionStyles({ [name]: Number(select.value) }) }),
    );
    const pick =
      number === 0
        ? el("span", { class: "pick" }, swatch, text)
        : el(
            "button",
            {
              type: "button",
              class: "pick",
              "aria-pressed": String(hand.number === number),
              onclick: () => pickRegion(number),
            },
            swatch,
            text,
          );
    return el(
      "div",
      { class: "region" },
      pick,
      styles.length > 1 && raster("content_regions")?.present.includes(number) ? select : null,
    );
  }

  function pickRegion(number) {
    hand.number = number;
    setErase(false);
  }

  function drawRegions() {
    const most = Math.max(1, ...raster("content_regions").present);
    shown = Math.max(shown, most + 1);
    const add =
      shown < REGIONS.length
        ? button("+", () => pickRegion(shown++), {
            "aria-label": "Add a region",
            title: "Add a region",
          })
        : null;
    const focus = regions.contains(document.activeElement)
      ? [...regions.querySelectorAll("button, select")].indexOf(document.activeElement)
      : -1;
    regions.replaceChildren(
      ...Array.from({ length: shown }, (_, number) => region(number)),
      ...[add].filter(Boolean),
    );
    if (focus >= 0) regions.querySelectorAll("button, select")[focus]?.focus();
  }

  function refresh() {
    const protect = hand.key === "protect";
    for (const [key, target] of Object.entries(targets)) pressed(target, key === hand.key);
    tools.forEach((tool, place) => pressed(tool, hand.erase === (place === 1)));
    size.value = 100 * hand.size;
    size.style.setProperty("--at", hand.size * 2);
    undo.setAttribute("aria-disabled", String(!raster(hand.key)?.past.length));
    regions.hidden = protect;
    if (!protect) drawRegions();
    note.textContent = protect
      ? "What is covered stays the photograph."
      : list(value("style")).length > 1
        ? "Each region is painted in its own style."
        : "Each region takes the style by itself; with Mix several each gets its own.";
  }

  return { refresh };
}
