// The losses over the steps, which the server draws.
import { alone, find, pause } from "./dom.js";
import { on, runUrl, shownId, shownRun, state } from "./store.js";

function draw() {
  const id = state.view === "content" || shownRun()?.is_film ? null : shownId();
  const run = id === state.current?.id ? (state.progress ?? state.current) : null;
  find("curves").hidden = !id;
  const url = runUrl(id, "losses", `step=${run?.step ?? "all"}`);
  if (id && find("plot").getAttribute("src") !== url) find("plot").src = url;
}

export function startCurves() {
  on("view current runs", draw);
  on("progress", alone(() => pause(2000).then(draw)));
  draw();
}
