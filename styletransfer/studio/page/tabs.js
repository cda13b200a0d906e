// The two views: arrow keys change between them, as a list of tabs should.
import { find } from "./dom.js";

const tabs = [...document.querySelectorAll("header [role=tab]")];

function choose(chosen) {
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    tab.tabIndex = tab === chosen ? 0 : -1;
    find(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
}

export function startTabs() {
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way) return;
      const next = tabs[(place + way + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  }
}
