"""Write a style network as ONNX: `scripts/export.py network=FILE output=net.onnx`.

Any ONNX runtime paints with the file, without this package; docs/networks.md has an example.
`target=web` writes a page that paints in a browser. Both targets need the extra `onnx`.
"""

import importlib.util
import json
import logging
import shlex
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from styletransfer.errors import UserError, pip_install
from styletransfer.features import build_features
from styletransfer.networks.encoder import SEEN, moments_of, paint_rows
from styletransfer.networks.export import web
from styletransfer.networks.file import VERSION, NetworkFile, network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE, StyleNetwork
from styletransfer.networks.settings import ExportConfig
from styletransfer.settings import FeaturesConfig
from styletransfer.system.files import atomic, check_outputs
from styletransfer.system.signals import raise_waiting, signals_held

# The setting `target` -> packages that the export needs.
TARGETS = {"onnx": ("onnx", "onnxscript"), "web": ("onnx", "onnxscript", "onnxruntime")}
# Axes of a picture (N, 3, H, W) that may have any length in the exported network -> their names.
AXES = {0: "batch", 2: "height", 3: "width"}
# Metadata that each ONNX file carries; MEANINGS has an entry for each input and output.
FILE_METADATA = {
    "source": f"styletransfer style network, version {VERSION}",
    "normalization": "none: 8-bit values divided by 255",
    "smallest_side": str(SMALLEST_SIDE),
}
MEANINGS = {
    "image": "batch x 3 x height x width, float32; red, green, blue; sRGB from 0 to 1",
    "painting": "1 x 3 x height x width, as an image",
    "pastiche": "as image, and of its size",
    "blend": "batch x styles, float32: how much of each style; rows add up to 1",
    "style": "batch x numbers, float32: a style, of which several may be blended",
}
# Shape of the picture with which torch traces the network: more than one picture, not square, no
# multiple of the stride, so that torch takes no size for a constant.
EXAMPLE = (2, 3, 22, 33)
# Packages whose loggers are silenced, because they log every step of an export.
LOGGERS = ("onnxscript", "onnx_ir")


def main(config: ExportConfig, folder: Path) -> None:
    """Write the network that `config` names, each file or folder atomically; print the paths."""
    check(config)
    network, target = network_file(config.network), Path(config.output)
    saved, targets = read(network), [target]
    if config.target == "web":
        runtime = web.check(config)
    else:
        if saved.network.encoder is not None:
            targets.append(target.with_suffix(".style.onnx"))
        check_outputs(targets, [("network", network)])
    with signals_held():  # an exception inside torch's exporter may abort the process
        exported = as_onnx(saved)
    raise_waiting()
    if config.target == "web":
        web.write(config, saved, exported, runtime)
        print(f"{target}\npython -m http.server --directory {shlex.quote(str(target))}")
        return
    for path, data in zip(targets, exported, strict=True):
        with atomic(path) as temporary:
            temporary.write_bytes(data)
        print(path)


def check(config: ExportConfig) -> None:
    """Raise UserError if a package is missing, or if an ONNX output does not end in .onnx."""
    if config.target == "onnx" and Path(config.output).suffix != ".onnx":
        raise UserError(f"output={config.output} must end in .onnx")
    for name in TARGETS[config.target]:
        if importlib.util.find_spec(name) is None:
            raise UserError(f"export needs the package {name}; run: {pip_install('onnx')}")


class ByRow(nn.Module):
    """ByRow is a network that takes each picture's style as a row of R numbers."""

    def __init__(self, network: StyleNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor, style: Tensor) -> Tensor:
        """Return the pastiches of images, both (N, 3, H, W), in the styles of the rows (N, R)."""
        return paint_rows(self.network, image, style)


class PaintingToRow(nn.Module):
    """PaintingToRow computes the row of R numbers for the style of a painting."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.features, self.encoder = build_features(FeaturesConfig()).ended_at(SEEN), encoder

    def forward(self, painting: Tensor) -> Tensor:
        """Return the row (1, R) of a painting (1, 3, h, w)."""
        row: Tensor = self.encoder(moments_of(self.features(painting, SEEN)))
        return row


def as_onnx(saved: NetworkFile) -> list[bytes]:
    """Return the bytes of a network's ONNX file and, if it has an encoder, of the encoder's file.

    The network's inputs are `image` and, for several styles, `blend`; with an encoder, they are
    `image` and `style`, the encoder's output for a `painting`. The network's output is `pastiche`,
    of the image's size. The graph pads to multiples of the stride and crops, so pictures may have
    any size from SMALLEST_SIDE up, and a batch any length.
    """
    image = torch.zeros(EXAMPLE)
    if (encoder := saved.network.encoder) is None:
        given = {"image": image}
        if len(saved.styles) > 1:
            given["blend"] = torch.ones(EXAMPLE[0], len(saved.styles))
        return [exported(saved.network, given, "pastiche", {"styles": json.dumps(saved.styles)})]
    rows = encoder(torch.zeros(EXAMPLE[0], 2 * sum(SEEN.values())))
    by_row = exported(ByRow(saved.network), {"image": image, "style": rows}, "pastiche", {})
    painting = image[:1].repeat(1, 1, 2, 2)
    return [by_row, exported(PaintingToRow(encoder), {"painting": painting}, "style", {})]


def exported(
    module: nn.Module, given: dict[str, Tensor], made: str, extra: dict[str, str]
) -> bytes:
    """Return the bytes of a module's ONNX file.

    `given` maps the name of each input to an example; `made` is the name of the output. Height and
    width may vary, and the batch too if the example holds more than one. `extra` is metadata.
    """
    from onnx_ir import Shape
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    free = [
        {n: name for n, name in AXES.items() if n < value.dim() and (n or len(value) > 1)}
        for value in given.values()
    ]
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own warnings
        program = torch.onnx.export(
            module.eval(),
            tuple(given.values()),
            input_names=list(given),
            output_names=[made],
            dynamic_shapes=tuple(free),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    # Remove excerpts of the source code and names of this machine's folders.
    ClearMetadataAndDocStringPass()(program.model)
    if made == "pastiche":
        program.model.graph.outputs[0].shape = Shape([AXES.get(axis, 3) for axis in range(4)])
    meanings = {name: MEANINGS[name] for name in (*given, made)}
    program.model.metadata_props.update(FILE_METADATA | meanings | extra)
    serialized: bytes = program.model_proto.SerializeToString()
    return serialized
