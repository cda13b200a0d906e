// Small helpers around the document.

export const find = (id) => document.getElementById(id);

/** Make an element: el("p.muted", { id: "note" }, "Text", child); what is null is left out. */
export function el(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  const properties = parts[0]?.constructor === Object ? parts.shift() : {};
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null) element.setAttribute(key, value);
  }
  element.append(...parts.flat().filter((part) => part !== null));
  return element;
}

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", onclick, ...properties }, text);

/** A picture that is loaded once it comes into sight; its name stands beside it. */
export const thumbnail = (src) => el("img", { src, alt: "", loading: "lazy", decoding: "async" });

export const press = (control, pressed) => control.setAttribute("aria-pressed", String(pressed));

/** Say whether a button acts; unlike `disabled` this keeps the keyboard's focus where it is. */
export const enable = (control, can) => control.setAttribute("aria-disabled", String(!can));

/** Do something at clicks on what has an id, while it is enabled: clicked({ go: paint }). */
export function clicked(actions) {
  for (const [id, action] of Object.entries(actions)) {
    const control = find(id);
    const click = () => control.getAttribute("aria-disabled") !== "true" && action();
    listen(control, { click });
  }
}

/** Do something at each kind of event: listen(stage, { keydown: move }). */
export function listen(target, actions) {
  for (const [kind, action] of Object.entries(actions)) target.addEventListener(kind, action);
}

/** Give the focus to another element where what had it is gone. */
export const refocus = (to) => document.activeElement.offsetParent || to?.focus();

/** A button whose action cannot be undone, and which asks before it. */
export function sure(text, action) {
  const onclick = async () => {
    const home = control.closest(".control, .card");
    if (!confirm(`${text} for good?`)) return;
    await action();
    refocus(home.querySelector("input, button"));
  };
  const control = button(text, onclick, { class: "quiet" });
  return control;
}

/** Replace what an element holds; the focus stays with what has the same `data-focus`. */
export function refill(parent, children) {
  const focus = parent.contains(document.activeElement) && document.activeElement.dataset.focus;
  parent.replaceChildren(...children);
  if (typeof focus === "string") parent.querySelector(`[data-focus="${focus}"]`)?.focus();
}

export const within = (low, number, high) => Math.min(high, Math.max(low, number));

/** Make a slider, which says its number to `enter`. */
export function slider(label, range, enter) {
  const oninput = () => enter(Number(element.value));
  const element = el("input", { type: "range", "aria-label": label, ...range, oninput });
  return element;
}

/** Tell screen readers, without changing what is seen. */
export const say = (text) => (find("said").textContent = text);

/** Make a `draw(...parts)` that does nothing where the parts are what they were. */
export function unlessSame(draw) {
  let drawn;
  return (...parts) => {
    const wanted = JSON.stringify(parts);
    if (wanted !== drawn) draw(...parts);
    drawn = wanted;
  };
}

/** Make an action that is not begun again before it has ended. */
export function alone(action) {
  let busy = false;
  return async (...parts) => {
    if (busy) return;
    busy = true;
    await Promise.resolve(action(...parts)).finally(() => (busy = false));
  };
}

/** Show that an element waits for a promise, and return what the promise comes to. */
export async function busy(element, promise) {
  element.waits = (element.waits ?? 0) + 1;
  element.setAttribute("aria-busy", "true");
  try {
    return await promise;
  } finally {
    if (!--element.waits) element.removeAttribute("aria-busy");
  }
}

/** Call `action` once nothing has asked for it during so many milliseconds. */
export function debounced(action, milliseconds) {
  let timer;
  return (...parts) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...parts), milliseconds);
  };
}
