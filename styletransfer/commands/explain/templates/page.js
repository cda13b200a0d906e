// One loss mode at a time; without this script all of them are shown one below the other.
const sections = [...document.querySelectorAll("section.mode")];
onhashchange = () => {
  const chosen = sections.find(({ id }) => location.hash === `#${id}`);
  for (const section of sections) {
    section.hidden = section !== (chosen ?? sections[0]);
    document.querySelector(`[href="#${section.id}"]`).ariaCurrent = !section.hidden;
  }
  chosen?.scrollIntoView();
};
onhashchange();

// A box of the map unfolds its nodes further down.
for (const box of document.querySelectorAll("[data-opens]")) {
  const target = document.getElementById(box.dataset.opens);
  Object.assign(box, { role: "button", tabIndex: 0, ariaLabel: `unfold ${box.dataset.group}` });
  box.onclick = () => {
    target.open = !target.open;
    if (target.open) target.scrollIntoView({ block: "center" });
  };
  box.onkeydown = (event) => {
    if (!["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    box.onclick();
  };
}
