// The style network, on WebGPU if available, otherwise on the processor.
let ort, network, eye, canGpu;
let turn = Promise.resolve();
onmessage = ({ data: asked, ports: [port] }) => {
  turn = turn.then(() => answered(asked)).catch(({ message }) => ({ error: message }))
    .then((answer) => port.postMessage(answer));
};

async function answered(asked) {
  const gpu = "Suspending" in WebAssembly && (await navigator.gpu?.requestAdapter());
  canGpu ??= Boolean(gpu) && !gpu.info.isFallbackAdapter; // a fallback runs on the processor
  try {
    if (!network) await begin(canGpu ? "jspi" : "wasm");
    return await (asked.isStyle ? look : paint)(asked);
  } catch (error) {
    if (!canGpu) throw error;
    canGpu = network = eye = false; // WebGPU failed: use the processor
    return answered(asked);
  }
}

async function begin(build) {
  ort = await import(`./ort.${build}.mjs`);
  ort.env.logLevel = "error";
  ort.env.wasm.numThreads = 1; // more threads need headers that a plain host does not send
  ort.env.wasm.wasmBinary = await unpacked(`ort.${build}.bin`);
  network = await session("network.bin");
}

async function unpacked(name) {
  const { ok, body } = await fetch(name);
  if (!ok) throw new Error(`${name} is missing`);
  const whole = new Response(body.pipeThrough(new DecompressionStream("gzip")));
  return new Uint8Array(await whole.arrayBuffer());
}

const session = async (name) => ort.InferenceSession.create(
  await unpacked(name), { executionProviders: [canGpu ? "webgpu" : "wasm"] });

async function look({ image }) {
  eye ||= await session("look.bin");
  const painting = tensor(image);
  const { style } = await eye.run({ painting });
  return { row: [...style.data], palette: palette(painting.data) };
}

async function paint({ image, row, goal }) {
  const start = performance.now(), fed = { image: tensor(image) };
  const told = network.inputNames[1]; // blend or style; undefined for one style
  if (told) fed[told] = new ort.Tensor("float32", Float32Array.from(row), [1, row.length]);
  const made = (await network.run(fed)).pastiche.data, count = made.length / 3;
  const m = (goal ? between(palette(made), goal) : new DOMMatrix()).toFloat64Array();
  for (let at = 0; at < count; at++) {
    const [r, g, b] = [made[at], made[count + at], made[2 * count + at]];
    for (let c = 0; c < 3; c++)
      image.data[4 * at + c] = 255 * (m[c] * r + m[4 + c] * g + m[8 + c] * b + m[12 + c]);
  }
  const seconds = (performance.now() - start) / 1000;
  return { image, seconds, on: canGpu ? "WebGPU" : "processor" };
}

function tensor({ data, width, height }) {
  const count = width * height, values = new Float32Array(3 * count);
  for (let at = 0; at < count; at++)
    for (let c = 0; c < 3; c++) values[c * count + at] = data[4 * at + c] / 255;
  return new ort.Tensor("float32", values, [1, 3, height, width]);
}

/** Return 12 numbers: each channel's mean and its row of the covariance. */
function palette(values) {
  const count = values.length / 3;
  const channels = [0, 1, 2].map((c) => values.subarray(c * count, (c + 1) * count));
  const means = channels.map((one) => one.reduce((sum, value) => sum + value, 0) / count);
  const shared = (i, j) => channels[i].reduce((sum, value, at) =>
    sum + (value - means[i]) * (channels[j][at] - means[j]), 0) / count;
  return means.flatMap((mean, i) => [mean, shared(i, 0), shared(i, 1), shared(i, 2)]);
}

/** Return a matrix that moves colours from one palette to another, as `finished` in encoder.py. */
function between(own, goal) {
  const matrix = ([, a, b, c, , d, e, f, , g, h, i], more = 1e-5) =>
    new DOMMatrix([a + more, b, c, 0, d, e + more, f, 0, g, h, i + more, 0, 0, 0, 0, 1]);
  const half = (one, two) => new DOMMatrix(one.toFloat64Array().map(
    (value, at) => (value + two.toFloat64Array()[at]) / 2));
  // The matrix A with A own A = goal is the geometric mean of own's inverse and goal, to which
  // repeated arithmetic and harmonic means converge.
  let [x, y] = [matrix(own).inverse(), matrix(goal)];
  for (let step = 0; step < 40; step++)
    [x, y] = [half(x, y), half(x.inverse(), y.inverse()).inverse()];
  return new DOMMatrix().translate(goal[0], goal[4], goal[8]).multiply(x)
    .translate(-own[0], -own[4], -own[8]);
}
