// What went wrong: beside the control that caused it, or above the page.
import { button, el, find } from "./dom.js";
import { showError } from "./form.js";
import { on } from "./store.js";

function bar(text, lasting = false) {
  const line = el("p", { class: "message" }, el("span", {}, text));
  if (!lasting)
    line.append(button("×", () => line.remove(), { "aria-label": "Dismiss", class: "quiet" }));
  return line;
}

export function tell(text) {
  const shown = [...find("messages").children].some((line) => line.firstChild.textContent === text);
  if (!shown) find("messages").append(bar(text));
}

export function startMessages() {
  const gone = bar(
    "The studio's server does not answer. This page tries again by itself; " +
      "if it stays away, look at the terminal.",
    true,
  );
  on("refusal", ({ error, key }) => {
    if (!key || !showError(key, error)) tell(error);
  });
  on("asked", () =>
    [...find("messages").children].forEach((line) => line === gone || line.remove()),
  );
  on("connection", (there) => (there ? gone.remove() : find("messages").append(gone)));
}
