"""Write a folder for any static host: a page on which a style network paints in the browser.

The page's files are in `page/`; docs/networks.md describes the page. The folder also holds the
network, data of its styles, and onnxruntime-web from its npm package. Large files are compressed
here and unpacked by the page, since a static host may not compress them.
"""

import base64
import gzip
import json
import os
import shutil
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import torch

from styletransfer.errors import UserError
from styletransfer.networks import encoder
from styletransfer.networks.commands.export import ExportConfig
from styletransfer.networks.file import FOLDER, NetworkFile, network_file
from styletransfer.networks.paintings import style_image
from styletransfer.pictures import convert, images
from styletransfer.settings import ASSETS
from styletransfer.system.files import temporary_for
from styletransfer.system.outputs import check_folder

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
# Build of onnxruntime-web -> its script and binary in dist/ of PACKAGE: wasm runs on the CPU, jspi
# on the GPU by WebGPU, in browsers whose WebAssembly can wait for promises (JSPI).
BUILDS = {
    "wasm": ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"),
    "jspi": ("ort.jspi.bundle.min.mjs", "ort-wasm-simd-threaded.jspi.wasm"),
}
# Licence files, read from the Python package onnxruntime, because the npm package PACKAGE, which is
# made from the same sources, has none.
LICENCES = ("LICENSE", "ThirdPartyNotices.txt")
# Longer side of a style's thumbnail in pixels.
SHOWN = 160


def check(config: ExportConfig) -> dict[str, bytes]:
    """Return onnxruntime-web's files: name in the output -> contents.

    (UserError if the output exists or cannot be written, or PACKAGE is not found in this VERSION.)
    """
    if os.path.lexists(config.output):
        raise UserError(f"output={config.output} is there already; remove it, or name another one")
    check_folder(config.output)
    package, files = Path(config.runtime or f"node_modules/{PACKAGE}"), {}
    try:
        found = json.loads((package / "package.json").read_bytes())
        if (found["name"], found["version"]) != (PACKAGE, VERSION):
            raise ValueError(found)
        for name, (script, binary) in BUILDS.items():
            files[f"ort.{name}.mjs"] = (package / "dist" / script).read_bytes()
            files[f"ort.{name}.bin"] = (package / "dist" / binary).read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"no {PACKAGE} {VERSION} at {package}; run npm install {PACKAGE}@{VERSION} here, or "
            f"name its folder: runtime=FOLDER/node_modules/{PACKAGE}"
        ) from error
    return files


def write(
    config: ExportConfig, saved: NetworkFile, exported: list[bytes], runtime: dict[str, bytes]
) -> None:
    """Write the page's folder for a network; `exported` are its ONNX files (see `as_onnx`)."""
    files = {file.name: file.read_bytes() for file in Path(__file__).with_name("page").iterdir()}
    files |= dict(zip(("network.bin", "look.bin"), exported, strict=False)) | runtime
    for name in files:
        if name.endswith(".bin"):
            files[name] = gzip.compress(files[name], mtime=0)
    for name in LICENCES:
        licence = distribution("onnxruntime").locate_file(f"onnxruntime/{name}")
        files[f"onnxruntime.{name}"] = Path(str(licence)).read_bytes()
    files["photo.jpg"] = (ASSETS / "content" / "chelsea.jpg").read_bytes()
    files["styles.json"] = json.dumps(styles(config, saved)).encode()
    write_folder(Path(config.output), files)


def styles(config: ExportConfig, saved: NetworkFile) -> list[dict[str, Any]]:
    """Return a dictionary for each style: name, row, palette or None, and "picture", a thumbnail.

    The row is the network's input for the style. The page blends styles by averaging rows and
    palettes.
    """
    bundled, known = {file.stem: file for file in (ASSETS / "style").glob("*.jpg")}, []
    if saved.network.encoder is None:
        drawn = bundled if network_file(config.network).parent == FOLDER else {}
        rows = torch.eye(len(saved.styles)).tolist()
        for name, row in zip(saved.styles, rows, strict=True):
            known.append({"name": name, "row": row, "palette": None, "file": drawn.get(name)})
    else:
        features = encoder.style_features(torch.device("cpu"), torch.float32)
        for name, file in sorted(bundled.items()):
            picture = style_image(str(file), encoder.ENCODED_SIDE, encoder.SMALLEST_PAINTING)
            row = saved.network.encoder(encoder.moments(features, picture))[0]
            values = {"row": row, "palette": encoder.color_moments(picture).flatten()}
            short = {
                key: value.double().round(decimals=6).tolist() for key, value in values.items()
            }
            known.append({"name": name, "file": file, **short})
    for style in known:
        file, style["name"] = style.pop("file"), style["name"].replace("_", " ")
        style["picture"] = ""
        if file is not None:
            jpeg = convert.jpeg(convert.small_picture(images.read(file), SHOWN), 85)
            style["picture"] = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
    return known


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` (name -> contents) as a new folder, all or none (UserError if it failed)."""
    temporary = temporary_for(folder)
    try:
        temporary.mkdir(parents=True)
        for name, data in files.items():
            (temporary / name).write_bytes(data)
        temporary.rename(folder)
    except OSError as error:
        reason = f"{error.strerror or error}; choose a writable folder with space left"
        raise UserError(f"cannot write {folder}: {reason}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
