// Small helpers around the document.

export const find = (id) => document.getElementById(id);

/** Make an element: el("button", { class: "main", onclick: paint }, "Paint"). */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", onclick, ...properties }, text);

/** Say whether a button acts; unlike `disabled` this keeps the keyboard's focus where it is. */
export function enable(control, enabled) {
  control.setAttribute("aria-disabled", String(!enabled));
}

export const enabled = (control) => control.getAttribute("aria-disabled") !== "true";

/** Tell screen readers, without changing what is seen. */
export function say(text) {
  if (find("said").textContent !== text) find("said").textContent = text;
}

/** Call `action` once nothing has asked for it during so many milliseconds. */
export function debounced(action, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

export async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    return "Selected: press Ctrl-C";
  }
}
