// The page's display and controls; painter.js paints, in its own thread.
const $ = (query) => document.querySelector(query);
const say = (text) => ($("#said").textContent = text);
say("Loading the network …");
const styles = [];
let painter, source, stream, isPainting, isAsked;

/** Scale a picture to at most `side` pixels; let painter.js paint it or read it as a style. */
function ask(picture, side, more, canvas = document.createElement("canvas")) {
  const size = [picture.videoWidth || picture.width, picture.videoHeight || picture.height];
  const scale = Math.min(1, side / Math.max(...size));
  const [width, height] = size.map((length) => Math.max(8, Math.round(length * scale)));
  Object.assign(canvas, { width, height });
  const brush = canvas.getContext("2d");
  Object.assign(brush, { fillStyle: "white", imageSmoothingQuality: "high" });
  brush.fillRect(0, 0, width, height); // seen where the picture is transparent
  brush.drawImage(picture, 0, 0, width, height);
  const { port1, port2 } = new MessageChannel();
  painter.postMessage({ image: brush.getImageData(0, 0, width, height), ...more }, [port2]);
  return new Promise((done, fail) => {
    port1.onmessage = ({ data }) => (data.error ? fail(new Error(data.error)) : done(data));
  });
}

async function paint() {
  isAsked = true;
  if (isPainting || !source || !styles.length) return;
  $("canvas").ariaBusy = isPainting = true;
  while (isAsked) {
    isAsked = Boolean(stream);
    if (!stream) say("Painting …");
    const start = performance.now(), styled = { row: mixed("row"), goal: mixed("palette") };
    try {
      const { image, seconds, on } = await ask(source, Number($("#size").value), styled);
      Object.assign($("canvas"), { width: image.width, height: image.height });
      $("canvas").getContext("2d").putImageData(image, 0, 0);
      const rate = 1000 / (performance.now() - start);
      const speed = stream ? `${rate.toFixed(1)} frames per second` : `${seconds.toFixed(2)} s`;
      $("#speed").textContent = `${image.width} x ${image.height}, ${speed}, ${on}`;
      if (!isAsked || stream) say("Painted."); // else the next pass begins
      $("#save").disabled = false;
    } catch (error) {
      closeCamera();
      say(`This cannot be painted: ${error.message}`);
    }
  }
  $("canvas").ariaBusy = isPainting = false;
}

/** Return the mean of the styles' rows or palettes, weighted by shares. */
function mixed(key) {
  const total = styles.reduce((sum, { share }) => sum + share, 0);
  return styles[0][key]?.map((_, at) =>
    styles.reduce((sum, style) => sum + (style.share / total) * style[key][at], 0));
}

/** Set each style's share, not all to 0, and paint. */
function share(of) {
  for (const style of styles) style.share = of(style);
  if (!styles.some((style) => style.share)) styles[0].share = 100;
  for (const style of styles) {
    style.slider.value = style.share;
    style.button.ariaPressed = style.share > 0;
  }
  paint();
}

function addStyle(style) {
  const item = $("template").content.cloneNode(true);
  const [button, image, label, slider] = item.querySelectorAll("button, img, span, input");
  styles.push(Object.assign(style, { button, slider, share: 0 }));
  image.hidden = !style.picture;
  image.src = style.picture;
  label.textContent = style.name;
  slider.ariaLabel = `share of ${style.name}`;
  slider.oninput = () => share((one) => (one === style ? Number(slider.value) : one.share));
  button.onclick = () => share((one) => (one === style ? 100 : 0));
  $("ul").append(item);
}

/** Use a file as the photograph or as a style. */
async function take(file, isStyle) {
  try {
    const picture = await createImageBitmap(file);
    if (isStyle) {
      say("Looking at the style …");
      const canvas = document.createElement("canvas");
      const seen = await ask(picture, 512, { isStyle }, canvas);
      addStyle({ ...seen, name: file.name, picture: canvas.toDataURL() });
      styles.at(-1).button.click();
    } else {
      closeCamera();
      source = Object.assign(picture, { title: file.name?.replace(/\.\w+$/, "") ?? "photo" });
      paint();
    }
  } catch (error) {
    say(`This file cannot be used: ${error.message}`);
  }
}

function closeCamera() {
  stream?.getTracks().forEach((track) => track.stop());
  $("#camera").ariaPressed = stream = null;
}

$("#camera").onclick = async () => {
  if (stream) return closeCamera();
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: true });
    source = Object.assign(document.createElement("video"), { srcObject: stream, muted: true });
    await source.play();
    $("#camera").ariaPressed = true;
    $("#size").value = 256;
    paint();
  } catch (error) {
    closeCamera();
    say(`No camera: ${error.message}`);
  }
};
$("#save").onclick = () => {
  const mixed = styles.filter(({ share }) => share > 0).map(({ name }) => name.replace(/\.\w+$/, ""));
  const download = `${source.title || "camera"} in ${mixed.join(" and ")}.png`;
  const link = { href: $("canvas").toDataURL(), download };
  Object.assign(document.createElement("a"), link).click();
};
$("#size").onchange = paint;
$("#photo").onchange = ({ target }) => take(target.files[0]);
$("#painting").onchange = ({ target }) => take(target.files[0], true);
document.onpaste = ({ clipboardData }) => take(clipboardData.files[0]);
document.ondragover = (event) => event.preventDefault();
document.ondrop = (event) => {
  event.preventDefault();
  take(event.dataTransfer.files[0], !$("#own").hidden && $("#palette").contains(event.target));
};

// The service worker, if the browser allows one, stores all files loaded from here on.
const { serviceWorker } = navigator;
await serviceWorker?.register("sw.js");
if (serviceWorker && !serviceWorker.controller)
  await new Promise((done) => {
    serviceWorker.oncontrollerchange = done;
    setTimeout(done, 1000);
  });
painter = new Worker("painter.js", { type: "module" });
painter.onerror = () => say("The network does not run in this browser.");
const known = await (await fetch("styles.json")).json();
known.forEach(addStyle);
$("#palette").hidden = known.length < 2;
$("#own").hidden = !known[0].palette;
styles[0].button.click();
if (!source) await take(await (await fetch("photo.jpg")).blob());
if (known[0].palette) await fetch("look.bin");
if (serviceWorker?.controller) $("#kept").textContent = "It now works offline, too.";
