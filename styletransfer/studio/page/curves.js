// The losses over the steps, which the server draws.
import { alone, find, pause } from "./dom.js";
import { on, runUrl, shownId, shownRun, state } from "./store.js";

function draw() {
  const id = shownId();
  const run = id === state.current?.id ? (state.progress ?? state.current) : shownRun();
  const there = Boolean(run?.step) && !shownRun()?.is_film;
  find("curves").hidden = !there;
  const url = runUrl(id, "losses", `step=${run?.step}`);
  if (there && find("plot").getAttribute("src") !== url) find("plot").src = url;
}

export function startCurves() {
  on("view current runs", draw);
  on("progress", alone(() => pause(2000).then(draw)));
  draw();
}
