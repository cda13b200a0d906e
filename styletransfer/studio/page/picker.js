// A picture, or several, chosen from thumbnails; files are dropped, pasted or chosen anywhere.
import { button, el, find, listen, refill, say, sure, thumbnail } from "./dom.js";
import { change, discard, emit, fail, list, on, picture, pictureName } from "./store.js";
import { pictureUrl, state, upload, value } from "./store.js";

/** What a picker offers: uploads for it, the newest first, then the bundled pictures of its kind. */
function offered(key) {
  const isFor = ({ kind, purpose }) =>
    kind === "upload" ? (purpose || key) === key : kind === key;
  const chosen = list(value(key));
  const all = state.pictures.filter((one) => chosen.includes(one.id) || isFor(one));
  const isAdded = ({ kind }) => kind === "upload";
  return [...all.filter(isAdded).reverse(), ...all.filter((one) => !isAdded(one))];
}

/** Upload files one by one and return their ids; add to `refused` why others are no pictures. */
async function send(files, key, refused) {
  const ids = new Set();
  for (const file of files) {
    say(`Reading ${file.name}`);
    emit("reading", { key, name: file.name });
    try {
      ids.add(await upload(file.name, file, key));
    } catch (refusal) {
      refused.push(refusal);
    }
    emit("reading", { key, name: null });
  }
  emit("pictures");
  return [...ids];
}

/** Add files for a key and choose them: one replaces, several styles are mixed. */
async function addFiles(files, key) {
  if (key === "content" && files.length > 1) {
    await addFiles([files[0]], "content");
    return addFiles([...files].slice(1), "style");
  }
  const several = state.controls.get(key).kind === "pictures";
  const refused = [];
  const ids = await send(several ? files : [files[0]], key, refused);
  const before = list(value(key));
  const mixed = before.length > 1 ? [...new Set([...before, ...ids])] : ids;
  if (ids.length) change({ [key]: several ? mixed : ids[0] });
  return refused.forEach((refusal) => fail(refusal, key));
}

/** A tile: a thumbnail that can be chosen. */
function tile({ id, name }, { type, key, chosen, choose }) {
  const checked = chosen.includes(id);
  const properties = { type, name: key, value: id, "data-focus": id, onchange: () => choose(id) };
  const input = el("input.away", properties);
  input.checked = checked;
  const image = thumbnail(pictureUrl(id, 160));
  const place = chosen.length > 1 ? chosen.indexOf(id) + 1 : 0;
  const badge = place ? el("b.badge", String(place)) : null;
  return el("label.tile", { title: name }, input, image, badge, el("span.away", name));
}

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
    remove.hidden = chosen.length !== 1 || picture(chosen[0])?.kind !== "upload";
  }

  on("pictures", draw);
  on("reading", (reading) => {
    if (reading.key !== key) return;
    note.textContent = reading.name ? `Reading ${reading.name}` : "";
    tiles.scrollTop = 0; // where the new one will be
  });
  const mixing = several ? el("label.check", mix, "Mix several") : null;
  const remove = sure("Remove", () => discard(key));
  const under = el("div.under", note, remove, mixing);
  return { element: el("div.picker", { "data-picker": key }, tiles, file, under), refresh: draw };
}

const zone = find("drop");

const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

function over(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  zone.hidden = false;
  for (const half of zone.children) half.classList.toggle("over", half === event.target);
}

function drop(event) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  zone.hidden = true;
  const place = event.target.closest?.("[data-picker], [data-key]")?.dataset;
  const key = place?.picker ?? place?.key ?? "content";
  if (event.dataTransfer.files.length) addFiles(event.dataTransfer.files, key);
}

/** A pasted picture goes to the picker that has the focus, or else is the photograph. */
function paste(event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  const picker = document.activeElement?.closest("[data-picker]");
  addFiles(files, picker?.dataset.picker ?? "content");
}

export function startDrops() {
  const leave = ({ relatedTarget }) => (zone.hidden ||= relatedTarget === null);
  listen(window, { dragenter: over, dragover: over, dragleave: leave, drop, paste });
}
