// A picture, or several, chosen from thumbnails; files are dropped, pasted or chosen anywhere.
import { busy, button, debounced, el, find, listen, refill, say, sure, thumbnail } from "./dom.js";
import { change, discard, emit, fail, list, on, picture, pictureName } from "./store.js";
import { pictureUrl, prepare, show, state, upload, value } from "./store.js";

const looks = new Map(); // id of a style -> the photograph in this style, on the style's tile
let asked = 0; // how often such pictures were asked for

/** What a picker offers: uploads for it, the newest first, then the bundled pictures of its kind. */
function offered(key) {
  const isFor = ({ kind, purpose }) =>
    kind === "upload" ? (purpose || key) === key : kind === key;
  const chosen = list(value(key));
  const all = state.pictures.filter((one) => chosen.includes(one.id) || isFor(one));
  const isAdded = ({ kind }) => kind === "upload";
  return [...all.filter(isAdded).reverse(), ...all.filter((one) => !isAdded(one))];
}

/** Upload files one by one and return them; add to `refused` why others are no pictures. */
async function send(files, key, refused) {
  const added = new Map();
  for (const file of files) {
    say(`Reading ${file.name}`);
    try {
      const one = await busy(find(`control-${key}`), upload(file.name, file, key));
      added.set(one.id, one);
    } catch (refusal) {
      refused.push(refusal);
    }
  }
  emit("pictures");
  return added;
}

/** Take over the settings that a pastiche carries, for the next run. */
function recall({ name, recipe: { settings, lost } }) {
  prepare({ content: value("content"), style: value("style"), ...settings });
  show(null);
  const labels = lost.map((key) => state.controls.get(key)?.label ?? key).join(", ");
  say(`The settings of ${name} are back.`);
  if (labels) fail({ message: `The settings of ${name} are back, except: ${labels}.` });
}

/** Add files for a key and choose them: one replaces, several styles are mixed. A pastiche that is
 * dropped as a photograph brings its settings back instead; it can be chosen afterwards. */
async function addFiles(files, key, isDropped = false) {
  if (key === "content" && files.length > 1) {
    await addFiles([files[0]], "content", isDropped);
    return addFiles([...files].slice(1), "style");
  }
  const several = state.controls.get(key).kind === "pictures";
  const refused = [];
  const added = await send(several ? files : [files[0]], key, refused);
  const [first] = added.values();
  if (isDropped && key === "content" && first?.recipe) return recall(first);
  const ids = [...added.keys()];
  const before = list(value(key));
  const mixed = before.length > 1 ? [...new Set([...before, ...ids])] : ids;
  if (ids.length) change({ [key]: several ? mixed : ids[0] });
  return refused.forEach((refusal) => fail(refusal, key));
}

/** A tile: a thumbnail that can be chosen. */
function tile({ id, name }, { type, key, chosen, choose }) {
  const properties = { type, name: key, value: id, "data-focus": id, onchange: () => choose(id) };
  const input = el("input.away", properties);
  input.checked = chosen.includes(id);
  const lazily = { alt: "", loading: "lazy", "data-style": id };
  if (key === "style" && !looks.has(id)) looks.set(id, el("img.look", lazily));
  const look = key === "style" ? looks.get(id) : null;
  const place = chosen.length > 1 ? chosen.indexOf(id) + 1 : 0;
  const badge = place ? el("b.badge", String(place)) : null;
  const images = [thumbnail(pictureUrl(id, 160)), look];
  return el("label.tile", { title: name }, input, images, badge, el("span.away", name));
}

/** Show the photograph in each style whose tile is in sight, one after the other. */
const paintLooks = debounced(async (tiles) => {
  const [content, mine] = [value("content"), ++asked];
  for (const look of tiles.querySelectorAll(".look")) {
    const query = new URLSearchParams({ content, style: look.dataset.style, side: 256 });
    if (mine !== asked || look.getAttribute("src") === `/api/look?${query}`) continue;
    look.src = `/api/look?${query}`;
    await look.decode().catch(() => {}); // then the tile shows the style
  }
}, 300);

export function makePicker(control, id) {
  const { key, label } = control;
  const several = control.kind === "pictures";
  const file = el("input.away", {
    type: "file",
    accept: key === "content" ? "image/*,video/*" : "image/*",
    tabindex: "-1",
    multiple: several,
    "aria-label": `File for ${label}`,
    onchange: async () => {
      await addFiles(file.files, key);
      file.value = "";
    },
  });
  const role = several ? "group" : "radiogroup";
  const tiles = el("div.tiles", { id, role, "aria-label": label });
  const note = el("p.chosen");
  const onchange = () => {
    if (!mix.checked) change({ [key]: list(value(key)).slice(0, 1) });
    draw();
  };
  const mix = el("input", { type: "checkbox", onchange });

  function choose(picked) {
    if (!several) return change({ [key]: picked });
    const now = list(value(key));
    if (!mix.checked) return change({ [key]: [picked] });
    const next = now.includes(picked) ? now.filter((one) => one !== picked) : [...now, picked];
    if (next.length) change({ [key]: next });
    return draw();
  }

  function draw() {
    const chosen = list(value(key));
    if (chosen.length > 1) mix.checked = true;
    const type = several && mix.checked ? "checkbox" : "radio";
    const name = { "aria-label": `Add a file for ${label}`, title: "Add a file" };
    const add = button("+", () => file.click(), { class: "tile add", ...name });
    const pictures = offered(key);
    const how = { type, key, chosen, choose };
    refill(tiles, [add, ...pictures.map((one) => tile(one, how))]);
    note.title = note.textContent = chosen.map(pictureName).join(" + ");
    if (key === "style") paintLooks(tiles);
    remove.hidden = chosen.length !== 1 || picture(chosen[0])?.kind !== "upload";
  }

  on("pictures", () => {
    draw();
    tiles.scrollTop = 0; // where a new one is
  });
  if (key === "style") on("settings", ({ keys }) => keys.includes("content") && paintLooks(tiles));
  const mixing = several ? el("label.check", mix, "Mix several") : null;
  const remove = sure("Remove", () => discard(key));
  const under = el("div.under", note, remove, mixing);
  return { element: el("div.picker", { "data-picker": key }, tiles, file, under), refresh: draw };
}

const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

const dragged = (isOver) => document.body.classList.toggle("dragged", isOver);

function over(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  dragged(true);
}

function drop(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  dragged(false);
  const key = event.target.closest?.("[data-picker]")?.dataset.picker ?? "content";
  if (event.dataTransfer.files.length) addFiles(event.dataTransfer.files, key, true);
}

/** A pasted picture goes to the picker that has the focus, or else is the photograph. */
function paste(event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  const picker = document.activeElement?.closest("[data-picker]");
  addFiles(files, picker?.dataset.picker ?? "content", true);
}

export function startDrops() {
  const leave = ({ relatedTarget }) => relatedTarget ?? dragged(false);
  listen(window, { dragenter: over, dragover: over, dragleave: leave, drop, paste });
}
