"""The frame of the page that `scripts/explain.py` writes, for `string.Template`."""

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where the gradient goes: $mode</title>
<link rel="icon" href="data:,">
<style>
body { font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  color: #1f2937; background: #f6f7f9; margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 18px; margin: 34px 0 8px; }
p { max-width: 78ch; margin: 8px 0; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.92em; }
.setting { color: #5b6472; }
.panel { background: #fff; border: 1px solid #dfe3e8; border-radius: 12px; padding: 14px 16px; }
.panel svg, details svg { display: block; width: 100%; height: auto; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px;
  margin: 18px 0; }
.card { background: #fff; border: 1px solid #dfe3e8; border-radius: 12px; padding: 10px 14px; }
.card b { display: block; font-size: 22px; }
.card span { color: #5b6472; font-size: 13px; line-height: 1.35; display: block; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: #5b6472; font-weight: 500; font-size: 13px; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid #edf0f3; vertical-align: top; }
tr:last-child td { border-bottom: 0; }
i { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin-right: 6px; }
.bar { background: #64748b; height: 8px; border-radius: 4px; display: block; margin-top: 8px; }
.track { background: #e8ecf0; height: 8px; border-radius: 4px; }
.track .bar { margin: 0; }
details { background: #fff; border: 1px solid #dfe3e8; border-left: 5px solid #94a3b8;
  border-radius: 8px; margin: 6px 0; overflow: hidden; }
details.loss { border-left-color: #7c3aed; margin-left: 28px; }
details[id^="content"] { border-left-color: #c2700a; }
details#total_variation { border-left-color: #2563c9; }
details.image { border-left-color: #059669; }
details.driver { border-left-color: #5b6472; }
summary { display: grid; grid-template-columns: 190px 90px 100px 1fr 170px; gap: 12px;
  align-items: center; padding: 7px 14px; cursor: pointer; }
details.loss summary { grid-template-columns: 162px 90px 100px 1fr 170px; }
.kept td:first-child { width: 330px; }
.kept td:last-child { width: 35%; }
summary span { color: #5b6472; font-size: 13.5px; }
summary:hover { background: #f3f5f8; }
details[open] summary { border-bottom: 1px solid #edf0f3; }
.dots i { margin: 0 3px 0 0; }
.group[role=button] { cursor: pointer; }
.group[role=button]:hover rect:first-child, .group:focus-visible rect:first-child
  { stroke-width: 2.5; }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.3fr); gap: 22px; }
pre { background: #f6f7f9; border-radius: 8px; padding: 10px 12px; margin: 0 0 10px;
  overflow-x: auto; }
@media (max-width: 800px) { .two { grid-template-columns: 1fr; }
  summary { grid-template-columns: 1fr 80px 80px; } .track, .dots { display: none; } }
</style>
</head>
<body>
<main>
<h1>Where the gradient goes: <code>$mode</code></h1>
<p class="setting">$setting</p>
<p>$lesson</p>
<div class="cards">$cards</div>

<div class="panel">$map</div>

<h2>Is a hand-written backward ever called?</h2>
<p>$answer</p>

<h2>Every node, folded</h2>
<p>Click a line here or a box above to unfold it. Nearest to the loss comes first, and each line
on the left leads to the node that receives the gradient next; hollow dots belong to another line.
Grey text names the tensors a node keeps for its backward. Memory that several nodes keep is
counted once, at the node nearest to the image; parameters, targets and the image live anyway and
are not counted. Coloured dots: the passes that come by.</p>
$groups

<h2>The backward passes</h2>
<div class="panel"><table>
<tr><th>pass</th><th>from</th><th>retain_graph</th><th>nodes entered</th><th>kept before</th>
<th>kept after</th></tr>
$passes
</table></div>

<h2>What <code>retain_graph=True</code> keeps alive</h2>
<p>Measured on a graph of its own: one forward, then one backward over all losses together.</p>
<div class="panel"><table class="kept">
$retention
</table></div>

<h2>The same in small: <code>(a + b) * d</code></h2>
<div class="panel two">
<div><pre>$code</pre>
$example
<p><code>e.backward()</code> entered $visits nodes. Each path ends at an AccumulateGrad, which
holds the leaf itself: that is how <code>e.backward()</code> comes to change
<code>a.grad</code>.</p></div>
<div><table>
<tr><th></th><th>value</th><th>.grad</th><th>why</th></tr>
$variables
</table></div>
</div>
</main>
<script>
for (const box of document.querySelectorAll(".group")) {
  const target = document.getElementById(box.dataset.group);
  if (!target) continue;
  const unfold = () => {
    target.open = !target.open;
    if (target.open) target.scrollIntoView({ behavior: "smooth", block: "center" });
  };
  box.setAttribute("role", "button");
  box.setAttribute("tabindex", "0");
  box.setAttribute("aria-label", "unfold " + box.dataset.group);
  box.addEventListener("click", unfold);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); unfold(); }
  });
}
</script>
</body>
</html>
"""
