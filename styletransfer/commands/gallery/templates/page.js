"use strict";
// The page can be read without this; it sorts, enlarges and copies.
const find = (query) => document.querySelector(query);
const all = (query) => [...document.querySelectorAll(query)];
const cards = all(".card");
const homes = cards.map((card) => card.parentNode);
find("#tools").hidden = cards.length < 2;
find("#order").onchange = ({ target: { value: by } }) => {
  const rank = (card) => Number(card.dataset.ranks.split(" ")[by]);
  if (by) find("#sorted").append(...[...cards].sort((a, b) => rank(a) - rank(b)));
  else cards.forEach((card, index) => homes[index].append(card));
  find("#swept").hidden = Boolean(by);
  find("#sorted").hidden = !by;
};

const zoom = find("#zoom");
let shown;

function enlarge(button) {
  shown = button;
  const { src, alt } = button.firstChild;
  Object.assign(find("#zoom img"), { src, alt });
  find("#zoom p").textContent = alt;
  if (!zoom.open) zoom.showModal();
}

for (const button of all(".zoom")) button.onclick = () => enlarge(button);
zoom.onclick = () => zoom.close();
zoom.onclose = () => shown.focus();
zoom.onkeydown = ({ key }) => {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const buttons = all(".zoom");
  if (way) enlarge(buttons.at((buttons.indexOf(shown) + way) % buttons.length));
};

for (const button of all(".copy")) {
  const command = button.previousElementSibling;
  button.hidden = false;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      button.textContent = "Selected: press Ctrl-C";
    }
  };
}
