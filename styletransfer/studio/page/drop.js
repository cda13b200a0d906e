// Pictures that are dropped on the page or pasted into it.
import { button, el, find } from "./dom.js";
import { addFiles } from "./picker.js";

const zone = find("drop");

const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
const target = (event) =>
  event.target.closest?.("[data-picker]")?.dataset.picker ??
  event.target.closest?.("[data-key]")?.dataset.key ??
  "content";

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
  if (event.dataTransfer.files.length) addFiles(event.dataTransfer.files, target(event));
}

/** A pasted picture may be either: ask, unless a picker has the focus. */
function paste(event) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  const picker = document.activeElement?.closest("[data-picker]");
  if (picker) addFiles(files, picker.dataset.picker);
  else ask(files);
}

function ask(files) {
  const url = URL.createObjectURL(files[0]);
  const take = (key) => () => {
    dialog.close();
    addFiles(files, key);
  };
  const dialog = el(
    "dialog",
    { class: "ask", "aria-labelledby": "ask-title" },
    el("h2", { id: "ask-title" }, "Use the pasted picture as"),
    el("img", { src: url, alt: "the pasted picture" }),
    el(
      "div",
      { class: "actions" },
      button("Photograph", take("content"), { class: "main" }),
      button("Style", take("style"), { class: "main" }),
      button("Leave it", () => dialog.close()),
    ),
  );
  dialog.addEventListener("close", () => {
    URL.revokeObjectURL(url);
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}

export function startDrops() {
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) zone.hidden = true;
  });
  addEventListener("drop", drop);
  addEventListener("paste", paste);
}
