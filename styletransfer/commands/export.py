"""Write a style network as ONNX: `scripts/export.py network=FILE output=net.onnx`.

Any ONNX runtime paints with the file, without this package; docs/networks.md shows how in ten
lines. It takes the extra `onnx`: pip install -e '.[onnx]'.
"""

import importlib.util
import json
import logging
import warnings
from pathlib import Path

import torch

from styletransfer.config import ExportConfig
from styletransfer.errors import UserError
from styletransfer.networks.file import VERSION, NetworkFile, network_file, read
from styletransfer.networks.johnson import SMALLEST_SIDE
from styletransfer.system.files import atomic, check_outputs
from styletransfer.system.signals import raise_waiting, signals_held

# Of the inputs and the output; None stands for the three colours.
AXES = ("batch", None, "height", "width")
# The exporter's example: neither square nor a multiple of the stride, and more than one picture,
# so that none of these is taken for a constant.
EXAMPLE = (2, 3, 22, 33)
# They tell every step of theirs to the log.
TALKATIVE = ("onnxscript", "onnx_ir")


def main(config: ExportConfig, folder: Path) -> None:
    """Write the network that `config` names as ONNX, whole or not at all, and say where it is."""
    target = Path(config.output)
    if target.suffix != ".onnx":
        raise UserError(f"output={config.output} must end in .onnx")
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise UserError(
                f"export needs the package {name}; install the extra, pip install -e '.[onnx]', or "
                "pip install onnx onnxscript"
            )
    network = network_file(config.network)
    saved = read(network)
    check_outputs([target], [("network", network)])
    with signals_held():  # an exception in the midst of torch's exporter may end the process
        exported = as_onnx(saved)
    raise_waiting()
    with atomic(target) as temporary:
        temporary.write_bytes(exported)
    print(target)


def as_onnx(saved: NetworkFile) -> bytes:
    """Return a network in the format ONNX, all weights inside.

    Its input is `image` and, for several styles, `blend`; its output `pastiche`, of the same size.
    Padding to multiples of the stride and the crop are parts of the graph, so pictures may have
    any size from SMALLEST_SIDE up, and a batch any number of them.
    """
    from onnx_ir import Shape
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    several = len(saved.styles) > 1
    example = (torch.zeros(EXAMPLE), torch.ones(EXAMPLE[0], len(saved.styles)))
    axes = {place: name for place, name in enumerate(AXES) if name}
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        program = torch.onnx.export(
            saved.network,
            example if several else example[:1],
            input_names=["image", "blend"] if several else ["image"],
            output_names=["pastiche"],
            dynamic_shapes=(axes, {0: "batch"}) if several else (axes,),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    # What it holds of our source code and of the folders it lies in is nobody's business.
    ClearMetadataAndDocStringPass()(program.model)
    program.model.graph.outputs[0].shape = Shape([name or 3 for name in AXES])
    program.model.metadata_props.update(described(saved.styles))
    serialized: bytes = program.model_proto.SerializeToString()
    return serialized


def described(styles: list[str]) -> dict[str, str]:
    """Return what the file says of itself, in ONNX's metadata."""
    told = {
        "source": f"styletransfer style network, version {VERSION}",
        "styles": json.dumps(styles),
        "image": "batch x 3 x height x width, float32; red, green, blue; sRGB from 0 to 1",
        "normalization": "none: 8-bit values divided by 255",
        "smallest_side": str(SMALLEST_SIDE),
        "pastiche": "as image, and of its size",
    }
    if len(styles) > 1:
        told["blend"] = "batch x styles, float32: how much of each style; rows add up to 1"
    return told
