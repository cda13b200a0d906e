"""Measure how fast the page of `export target=web` paints: `python benchmarks/web.py FOLDER`.

The script needs the extras [onnx] and [browser], and Chromium. The page and onnxruntime in Python
paint one picture in turn, each in one thread. The page's seconds are those that the page shows;
they include the conversions from and to 8 bits and to the style's colours. Python's seconds are
those of the network alone.
"""

import argparse
import gzip
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image

from styletransfer.settings import ASSETS

SIZES = {256: (256, 192), 512: (512, 384)}  # the page's name of a size -> width, height in pixels


def main() -> None:
    """Print for each size the median seconds of the page and of Python, and their ratio."""
    import onnxruntime
    from playwright.sync_api import expect, sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    network = gzip.decompress((given.folder / "network.bin").read_bytes())
    session = onnxruntime.InferenceSession(network, options)
    row = json.loads((given.folder / "styles.json").read_bytes())[0]["row"]
    rows = {one.name: np.array([row], np.float32) for one in session.get_inputs()[1:]}
    photo = Image.open(ASSETS / "content" / "coffee.jpg").resize(SIZES[512])
    serve = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
    server = subprocess.Popen(
        serve, cwd=given.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    (address,) = re.findall(r"http://[\d.:]+/", server.stdout.readline())
    seconds = defaultdict(list)
    with sync_playwright() as tools, tempfile.NamedTemporaryFile(suffix=".png") as file:
        photo.save(file.name)
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("#kept")).to_contain_text("offline", timeout=60_000)
        page.set_input_files("#photo", file.name)
        for number in range(given.rounds + 1):
            for size, (width, height) in SIZES.items():
                page.select_option("#size", str(size))
                speed = page.locator("#speed")
                expect(speed).to_contain_text(f"{width} x {height}, ", timeout=60_000)
                image = np.asarray(photo.resize((width, height)), np.float32) / 255
                fed = {"image": image.transpose(2, 0, 1)[None], **rows}
                start = time.perf_counter()
                session.run(None, fed)
                if number:  # the first round warms up
                    seconds[size, "Python"].append(time.perf_counter() - start)
                    seconds[size, "page"].append(float(speed.inner_text().split(", ")[1][:-2]))
        print(f"Chromium {browser.version}, {speed.inner_text().rsplit(', ')[-1]}")
        browser.close()
    server.terminate()
    for size in SIZES:
        page_s, python_s = (statistics.median(seconds[size, who]) for who in ("page", "Python"))
        print(
            f"{size}: page {page_s:.3f} s, Python {python_s:.3f} s, ratio {page_s / python_s:.1f}"
        )


if __name__ == "__main__":
    main()
