// A picture, or several, chosen from thumbnails; files are dropped, pasted or chosen anywhere.
import { el, button, say } from "./dom.js";
import { pictureUrl, upload } from "./http.js";
import { change, emit, fail, list, on, state, value, pictureName } from "./store.js";

// Pictures that the brush has made are called so, and are not to choose from.
export const BRUSHED = { regions: "brushed regions.png", protection: "brushed protection.png" };
const brushed = Object.values(BRUSHED).flatMap((name) => [name, name.replace(".png", "")]);

const purposes = JSON.parse(localStorage.getItem("purposes") ?? "{}"); // id -> key it was added for
const kindOf = { content: "content", style: "style", style_detail: "style" };

/** What a picker offers: the bundled pictures of its kind, and what was added for it. */
function offered(key) {
  const chosen = list(value(key));
  return state.pictures.filter(
    ({ id, name, kind }) =>
      chosen.includes(id) ||
      (kind === "upload"
        ? !brushed.includes(name) && (purposes[id] ?? key) === key
        : kind === (kindOf[key] ?? kind)),
  );
}

/** Upload files one by one and return their ids; what is no picture is named beside `key`. */
async function send(files, key) {
  const ids = [];
  for (const file of files) {
    say(`Reading ${file.name}`);
    emit("reading", { key, name: file.name });
    try {
      const added = await upload(file.name, file);
      purposes[added.id] ??= key;
      localStorage.setItem("purposes", JSON.stringify(purposes));
      if (!state.pictures.some(({ id }) => id === added.id))
        state.pictures.push({ kind: "upload", ...added });
      if (!ids.includes(added.id)) ids.push(added.id);
    } catch (refusal) {
      fail(refusal, key);
    }
    emit("reading", { key, name: null });
  }
  emit("pictures");
  return ids;
}

/** Add files for a key and choose them: one replaces, several styles are mixed. */
export async function addFiles(files, key) {
  if (key === "content" && files.length > 1) {
    await addFiles([files[0]], "content");
    return addFiles([...files].slice(1), "style");
  }
  const several = state.controls.get(key).kind === "pictures";
  const ids = await send(several ? files : [files[0]], key);
  if (!ids.length) return null;
  const mixed = several && list(value(key)).length > 1;
  return change({
    [key]: several ? (mixed ? [...new Set([...list(value(key)), ...ids])] : ids) : ids[0],
  });
}

/** A tile: a thumbnail that can be chosen. */
function tile(one, type, key, chosen, choose) {
  const input = el("input", {
    type,
    name: key,
    value: one.id,
    class: "away",
    onchange: () => choose(one.id),
  });
  input.checked = chosen.includes(one.id);
  const image = el("img", {
    src: pictureUrl(one.id, 160),
    alt: "",
    loading: "lazy",
    decoding: "async",
  });
  const place = chosen.indexOf(one.id) + 1;
  const badge = chosen.length > 1 && place ? el("b", { class: "badge" }, String(place)) : null;
  return el(
    "label",
    { class: "tile", title: one.name },
    input,
    image,
    badge,
    el("span", { class: "away" }, one.name),
  );
}

export function makePicker(control, id) {
  const { key, label } = control;
  const several = control.kind === "pictures";
  const file = el("input", {
    type: "file",
    accept: "image/*",
    class: "away",
    tabindex: "-1",
    multiple: several,
    "aria-label": `File for ${label}`,
    "data-file": key,
  });
  file.addEventListener("change", async () => {
    await addFiles(file.files, key);
    file.value = "";
  });
  const tiles = el("div", {
    id,
    class: "tiles",
    role: several ? "group" : "radiogroup",
    "aria-label": label,
  });
  const note = el("p", { class: "chosen" });
  const mix = el("input", { type: "checkbox" });
  mix.addEventListener(
    "change",
    () => (mix.checked ? draw() : change({ [key]: list(value(key)).slice(0, 1) }), draw()),
  );
  const element = el(
    "div",
    { class: "picker", "data-picker": key },
    tiles,
    file,
    el(
      "div",
      { class: "under" },
      note,
      several ? el("label", { class: "check" }, mix, "Mix several") : null,
    ),
  );

  function choose(chosen) {
    if (!several) return change({ [key]: chosen });
    const now = list(value(key));
    if (!mix.checked) return change({ [key]: [chosen] });
    const next = now.includes(chosen) ? now.filter((one) => one !== chosen) : [...now, chosen];
    if (next.length) change({ [key]: next });
    return draw(chosen);
  }

  function draw(
    focus = document.activeElement?.name === key ? document.activeElement.value : null,
  ) {
    const chosen = list(value(key));
    if (chosen.length > 1) mix.checked = true;
    const type = several && mix.checked ? "checkbox" : "radio";
    const add = button("+", () => file.click(), {
      class: "tile add",
      "aria-label": `Add a file for ${label}`,
      title: "Add a file",
    });
    const none =
      control.default === null
        ? tile({ id: "", name: "None" }, type, key, chosen.length ? chosen : [""], () =>
            change({ [key]: null }),
          )
        : null;
    none?.querySelector("img").replaceWith(el("i", {}, "None"));
    tiles.replaceChildren(
      ...[add, none].filter(Boolean),
      ...offered(key).map((one) => tile(one, type, key, chosen, choose)),
    );
    note.textContent = chosen.map(pictureName).join(" + ");
    note.title = note.textContent;
    if (focus !== null)
      [...tiles.querySelectorAll("input")].find((one) => one.value === focus)?.focus();
  }

  on("pictures", () => draw());
  on("reading", (reading) => {
    if (reading.key === key) note.textContent = reading.name ? `Reading ${reading.name}` : "";
  });
  return { element, refresh: () => draw() };
}
