"""Write a style network as ONNX: `scripts/export.py network=FILE output=net.onnx`.

Any ONNX runtime paints with the file, without this package; docs/programs.md has examples.
`target=web` writes a page that paints in a browser. Both targets need the extra `onnx`.
"""

import importlib.util
import json
import logging
import shlex
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from styletransfer.errors import UserError, pip_install
from styletransfer.networks.commands.export import ExportConfig
from styletransfer.networks.encoder import SEEN, paint_rows
from styletransfer.networks.export import web
from styletransfer.networks.export.whole import PaintingToRow, Whole
from styletransfer.networks.file import VERSION, NetworkFile, network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE, StyleNetwork
from styletransfer.system.files import write_atomic
from styletransfer.system.locks import output_locked
from styletransfer.system.outputs import check_outputs
from styletransfer.system.signals import raise_waiting, signals_held

ONNX = ("onnx", "onnxscript")
# Value of the setting `target` -> packages that this export needs.
TARGETS = {"onnx": ONNX, "web": (*ONNX, "onnxruntime")}
# Axis of a picture (N, 3, H, W) -> its name. The exported network accepts any height and width, and
# any batch size if the example has more than one picture.
AXES = {0: "batch", 2: "height", 3: "width"}
# Metadata of each ONNX file. A file also gets the entries of MEANINGS for its inputs and output.
FILE_METADATA = {
    "source": f"styletransfer style network, version {VERSION}",
    "normalization": "none: 8-bit values divided by 255",
    "smallest_side": str(SMALLEST_SIDE),
}
MEANINGS = {
    "image": "batch x 3 x height x width, float32; red, green, blue; sRGB from 0 to 1",
    "painting": "1 x 3 x height x width, as an image",
    "strength": "1 float32: from 0 (the photograph's own style) to 1 (the painting's, the default)",
    "pastiche": "as image, and of its size",
    "blend": "batch x styles, float32: how much of each style; rows add up to 1",
    "style": "batch x numbers, float32: a style, of which several may be blended",
}
# Shape of the example with which torch traces the network. It has two pictures, not square, whose
# sides are no multiples of the stride: otherwise torch would treat a size as a constant.
EXAMPLE = (2, 3, 22, 33)
# Packages whose loggers are silenced, because they log every step of an export.
LOGGERS = ("onnxscript", "onnx_ir")


def export_network(config: ExportConfig) -> None:
    """Convert the network that `config` names; write all files or none, and print the path.

    For a page, also print the command that serves it.
    """
    check_target(config)
    network, target = network_file(config.network), Path(config.output)
    saved = read(network)
    if config.target == "web":
        runtime = web.check(config)
    else:
        check_outputs([target], [("network", network)])
    is_whole = config.target == "onnx" and saved.network.encoder is not None
    with output_locked(target):
        with signals_held():  # an exception inside torch's exporter may abort the process
            made = [whole_onnx(saved)] if is_whole else as_onnx(saved)
        raise_waiting()
        if config.target == "web":
            web.write(config, saved, made, runtime)
            print(f"{target}\npython -m http.server --directory {shlex.quote(str(target))}")
            return
        write_atomic(target, made[0])
    print(target)


def check_target(config: ExportConfig) -> None:
    """Raise UserError if a package is missing, or if an ONNX output does not end in .onnx."""
    if config.target != "web" and Path(config.output).suffix != ".onnx":
        raise UserError(f"output={config.output} must end in .onnx")
    for name in TARGETS[config.target]:
        if importlib.util.find_spec(name) is None:
            raise UserError(f"export needs the package {name}; run: {pip_install('onnx')}")


class ByRow(nn.Module):
    """ByRow takes a picture's style as a row: the scales and shifts of all normalizations."""

    def __init__(self, network: StyleNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor, style: Tensor) -> Tensor:
        """Return the pastiches of images, both (N, 3, H, W), in the styles of the rows (N, R)."""
        return paint_rows(self.network, image, style)


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


def whole_onnx(saved: NetworkFile) -> bytes:
    """Return the bytes of one ONNX file for a network that knows any style, see `Whole`."""
    image = torch.zeros(EXAMPLE)[:1]
    painting = image.repeat(1, 1, 2, 2)
    given = {"image": image, "painting": painting, "strength": torch.ones(1)}
    return exported(Whole(saved.network), given, "pastiche", {})


def exported(
    module: nn.Module, given: dict[str, Tensor], made: str, extra: dict[str, str]
) -> bytes:
    """Return the bytes of a module's ONNX file.

    `given` maps the name of each input to an example; `made` is the name of the output. Along
    AXES, the file accepts other sizes than those of the examples; but if an example has one
    picture, the file takes one. `extra` is metadata.
    """
    from onnx_ir import Shape
    from onnx_ir import Tensor as Constant
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    free = [
        {
            n: axis if name == "image" else f"{name}_{axis}"
            for n, axis in AXES.items()
            if n < value.dim() and (n or len(value) > 1)
        }
        for name, value in given.items()
    ]
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"):  # hides the exporter's own warnings
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
        sizes = [AXES[0] if len(given["image"]) > 1 else 1, 3, AXES[2], AXES[3]]
        program.model.graph.outputs[0].shape = Shape(sizes)
    for value in program.model.graph.inputs:
        if value.name == "strength":  # the only optional input; its default is 1
            value.const_value = Constant(np.ones(1, np.float32), name=value.name)
            program.model.graph.register_initializer(value)
    meanings = {name: MEANINGS[name] for name in (*given, made)}
    program.model.metadata_props.update(FILE_METADATA | meanings | extra)
    serialized: bytes = program.model_proto.SerializeToString()
    return serialized
