// Small helper functions for the document and for Preact.
import { html, useRef } from "./preact.js";

export const find = (id) => document.getElementById(id);

/** Call an action at events of a kind: listen(stage, { keydown: move }). */
export function listen(target, actions) {
  for (const [kind, action] of Object.entries(actions)) target.addEventListener(kind, action);
}

/** A button. An `idle` one does nothing; unlike a `disabled` one, it can keep the focus. */
export const Button = ({ onclick, idle = false, pressed, expanded, children, ...more }) =>
  html`<button type="button" onclick=${() => idle || onclick()} aria-disabled=${String(idle)}
    aria-pressed=${pressed === undefined ? undefined : String(pressed)} ...${more}
    >${children}</button>`;

/** A button that opens files, which `enter` receives; `field` describes the hidden field for them. */
export function Files({ enter, field, ...more }) {
  const input = useRef();
  const take = async ({ target }) => {
    await enter(target.files);
    target.value = "";
  };
  return html`<${Button} ...${more} onclick=${() => input.current.click()} />
    <input class="away" type="file" ref=${input} tabindex="-1" onchange=${take} ...${field} />`;
}

/** A button that asks before its action, because the action cannot be undone. */
export function Sure({ text, action }) {
  const click = async ({ target }) => {
    const home = target.closest(".control, .card");
    if (!confirm(`${text}? This cannot be undone.`)) return;
    await action();
    await null; // until the page is drawn again
    refocus(home.querySelector("input, button"));
  };
  return html`<button type="button" class="quiet" onclick=${click}>${text}</button>`;
}

/** Give the focus to an element if the element that had it is no longer shown. */
export const refocus = (to) => document.activeElement.offsetParent || to?.focus();

/** A picture, loaded once it is scrolled into view; `alt` is empty: its name is beside it. */
export const Thumbnail = ({ src }) =>
  html`<img src=${src} alt="" loading="lazy" decoding="async" />`;

export const Slider = ({ label, enter, ...range }) =>
  html`<input type="range" aria-label=${label} ...${range}
    oninput=${({ target }) => enter(Number(target.value))} />`;

/** Two buttons, one of them pressed; `pairs` has [text, whether pressed, action] for each. */
export const Either = ({ label, pairs }) =>
  html`<div class="segments" role="group" aria-label=${label}>${pairs.map(([text, pressed, act]) =>
    html`<${Button} pressed=${pressed} onclick=${act}>${text}<//>`)}</div>`;

export const within = (low, number, high) => Math.min(high, Math.max(low, number));

/** Make screen readers say a text, which is not visible. */
export const say = (text) => (find("said").textContent = text);

/** Return a function that calls `action`, but does nothing while an earlier call goes on. */
export function alone(action) {
  let busy = false;
  return async (...parts) => {
    if (busy) return;
    busy = true;
    await Promise.resolve(action(...parts)).finally(() => (busy = false));
  };
}

/** Mark an element as busy until a promise is settled; return the promise's value. */
export async function busy(element, promise) {
  element.waits = (element.waits ?? 0) + 1;
  element.setAttribute("aria-busy", "true");
  try {
    return await promise;
  } finally {
    if (!--element.waits) element.removeAttribute("aria-busy");
  }
}

/** Return a function that calls `action` when `milliseconds` have passed without another call of
 * the function. */
export function debounced(action, milliseconds) {
  let timer = null;
  return (...parts) => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds, ...parts);
  };
}
