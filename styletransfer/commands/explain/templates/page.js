// One loss mode at a time; without this script all of them are shown one below the other.
const sections = [...document.querySelectorAll("section.mode")];
function choose() {
  const chosen = sections.find((section) => "#" + section.id === location.hash);
  const shown = chosen || sections[0];
  for (const section of sections) section.hidden = section !== shown;
  for (const link of document.querySelectorAll(".modes a"))
    link.setAttribute("aria-current", link.hash === "#" + shown.id);
  if (chosen) chosen.scrollIntoView();
}
addEventListener("hashchange", choose);
choose();

// A box of the map unfolds its nodes further down.
for (const box of document.querySelectorAll("[data-opens]")) {
  const target = document.getElementById(box.dataset.opens);
  const unfold = () => {
    target.open = !target.open;
    if (target.open) target.scrollIntoView({ block: "center" });
  };
  box.setAttribute("role", "button");
  box.setAttribute("tabindex", "0");
  box.setAttribute("aria-label", "unfold " + box.dataset.group);
  box.onclick = unfold;
  box.onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); unfold(); }
  };
}
