// Small helpers around the document, and around Preact.
import { html } from "./preact.js";

export const find = (id) => document.getElementById(id);

export const press = (control, pressed) => control.setAttribute("aria-pressed", String(pressed));

/** Do something at clicks on what has an id: clicked({ fit, one: pixelByPixel }). */
export function clicked(actions) {
  for (const [id, click] of Object.entries(actions)) listen(find(id), { click });
}

/** Do something at each kind of event: listen(stage, { keydown: move }). */
export function listen(target, actions) {
  for (const [kind, action] of Object.entries(actions)) target.addEventListener(kind, action);
}

/** A button. Unlike `disabled`, `idle` keeps the keyboard's focus where it is. */
export const Button = ({ onclick, idle = false, pressed, expanded, children, ...more }) =>
  html`<button type="button" onclick=${() => idle || onclick()} aria-disabled=${String(idle)}
    aria-pressed=${pressed === undefined ? undefined : String(pressed)} ...${more}
    >${children}</button>`;

/** A button whose action cannot be undone, and which asks before it. */
export function Sure({ text, action }) {
  const click = async ({ target }) => {
    const home = target.closest(".control, .card");
    if (!confirm(`${text} for good?`)) return;
    await action();
    await null; // until it is drawn
    refocus(home.querySelector("input, button"));
  };
  return html`<button type="button" class="quiet" onclick=${click}>${text}</button>`;
}

/** Give the focus to another element where what had it is gone. */
export const refocus = (to) => document.activeElement.offsetParent || to?.focus();

/** A picture that is loaded once it comes into sight; its name stands beside it. */
export const Thumbnail = ({ src, ...more }) =>
  html`<img src=${src} alt="" loading="lazy" decoding="async" ...${more} />`;

export const Slider = ({ label, enter, ...range }) =>
  html`<input type="range" aria-label=${label} ...${range}
    oninput=${({ target }) => enter(Number(target.value))} />`;

export const within = (low, number, high) => Math.min(high, Math.max(low, number));

/** Tell screen readers, without changing what is seen. */
export const say = (text) => (find("said").textContent = text);

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

/** Call `action` once nothing has asked for it during so many milliseconds; or `now()`. */
export function debounced(action, milliseconds) {
  let timer = null;
  let last = [];
  const act = () => {
    timer = null;
    return action(...last);
  };
  const later = (...parts) => {
    clearTimeout(timer);
    last = parts;
    timer = setTimeout(act, milliseconds);
  };
  later.now = () => {
    if (timer === null) return null;
    clearTimeout(timer);
    return act();
  };
  return later;
}
