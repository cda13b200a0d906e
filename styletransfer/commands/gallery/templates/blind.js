"use strict";
// Pair after pair in random order, sides at random; the answers are counted, and kept on request.
const find = (query) => document.querySelector(query);
const shuffled = (all) => all.map((one) => [Math.random(), one]).sort().map(([, one]) => one);
const pairs = shuffled(JSON.parse(find("#pairs").textContent));
const buttons = [...document.querySelectorAll("#pair button")];
const [answers, counts] = [[], {}];
let pair, sides;

function show() {
  pair = pairs[answers.length];
  find("#said").textContent = pair ? `${answers.length + 1} of ${pairs.length}` : result();
  find("#pair").hidden = !pair;
  sides = shuffled([0, 1]);
  if (pair) buttons.forEach((button, n) => (button.firstChild.src = pair.pictures[sides[n]]));
}

function choose(n) {
  const [preferred, other] = [sides[n], sides[1 - n]].map((side) => pair.names[side]);
  answers.push({ preferred, other });
  for (const name of [preferred, other]) (counts[name] ??= { preferred: 0, of: 0 }).of += 1;
  counts[preferred].preferred += 1;
  show();
}

// Where the true share lies at 95 %, given so many of so many (Wilson 1927).
function interval({ preferred, of }) {
  const [share, z] = [preferred / of, 1.96 ** 2 / of];
  const half = Math.sqrt(z * (share * (1 - share) + z / 4));
  return [-half, half].map((way) => Math.round((100 * (share + z / 2 + way)) / (1 + z)));
}

function result() {
  for (const count of Object.values(counts)) count.percent = interval(count);
  const text = encodeURIComponent(JSON.stringify({ counts, answers }, null, 2));
  Object.assign(find("#file"), { hidden: false, href: `data:application/json,${text}` });
  return Object.entries(counts).map(([name, { preferred, of, percent }]) =>
    `${name}: ${preferred} of ${of} (${percent.join(" to ")} %)`).join("; ");
}

buttons.forEach((button, n) => (button.onclick = () => choose(n)));
onkeydown = ({ key }) => {
  const n = ["ArrowLeft", "ArrowRight"].indexOf(key);
  if (pair && n >= 0) choose(n);
};
show();
