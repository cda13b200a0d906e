"use strict";
// The page can be read without this; it sorts, enlarges and copies.
const cards = [...document.querySelectorAll(".card")];
const homes = cards.map((card) => card.parentNode);
const swept = document.getElementById("swept");
const sorted = document.getElementById("sorted");
const order = document.getElementById("order");

function sort() {
  const by = order.value;
  const rank = (card) => Number(card.dataset.ranks.trim().split(" ")[by]);
  if (by) sorted.append(...[...cards].sort((a, b) => rank(a) - rank(b)));
  else cards.forEach((card, index) => homes[index].append(card));
  swept.hidden = Boolean(by);
  sorted.hidden = !by;
}

order.value = "";
order.addEventListener("change", sort);
document.getElementById("tools").hidden = cards.length < 2;

const zoom = document.getElementById("zoom");
let shown;

function enlarge(button) {
  shown = button;
  const [from, to] = [button.querySelector("img"), zoom.querySelector("img")];
  to.src = from.src;
  to.alt = from.alt;
  zoom.querySelector("p").textContent = from.alt;
  if (!zoom.open) zoom.showModal();
}

for (const button of document.querySelectorAll(".zoom"))
  button.addEventListener("click", () => enlarge(button));
zoom.addEventListener("click", () => zoom.close());
zoom.addEventListener("close", () => shown.focus());
zoom.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!way) return;
  const all = [...document.querySelectorAll(".zoom")];
  enlarge(all[(all.indexOf(shown) + way + all.length) % all.length]);
});

for (const button of document.querySelectorAll(".copy")) {
  const command = button.previousElementSibling;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      button.textContent = "Selected: press Ctrl-C";
    }
  });
}
