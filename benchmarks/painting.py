"""Measure how many pictures per second our style networks and that of pytorch/examples paint.

    python benchmarks/painting.py

The script prints how many pictures per second each layout of a style network paints, as `apply`
runs it, without reading and writing files. It prints the ratio to the network of pytorch/examples'
fast_neural_style, measured at the same size in the same run. The last column is the time of a
forward pass, divided by that of its convolutions.
Weights are random, because time does not depend on them. Run the script on an idle machine.
"""

import argparse
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from benchmarks.measured import Spread, describe_machine, table
from styletransfer.features.vgg import randomize
from styletransfer.lessons.measure import Work, seconds_by_round
from styletransfer.networks.deploy import deployed
from styletransfer.networks.johnson import LAYOUTS, StyleNetwork
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.system.devices import choose_device, has_native_bfloat16

REFERENCE = "pytorch/examples fast_neural_style"


class Residual(nn.Sequential):
    """A Residual is a sequence of layers whose input is added to its output."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x plus the output of the layers at x."""
        added: Tensor = x + super().forward(x)
        return added


def reference() -> nn.Sequential:
    """Return a network with the layers of fast_neural_style in pytorch/examples.

    The input is (N, 3, H, W) in [0, 255]; the output has the same shape and scale, without bounds.
    """

    def conv(before: int, after: int, kernel: int = 3, stride: int = 1) -> list[nn.Module]:
        reflected = nn.ReflectionPad2d(kernel // 2)
        return [reflected, nn.Conv2d(before, after, kernel, stride)]

    def normed(before: int, after: int, kernel: int = 3, stride: int = 1) -> list[nn.Module]:
        return [*conv(before, after, kernel, stride), nn.InstanceNorm2d(after, affine=True)]

    def upsampled(before: int, after: int) -> list[nn.Module]:
        return [nn.Upsample(scale_factor=2, mode="nearest"), *normed(before, after), nn.ReLU()]

    return nn.Sequential(
        *[*normed(3, 32, kernel=9), nn.ReLU()],
        *[*normed(32, 64, stride=2), nn.ReLU()],
        *[*normed(64, 128, stride=2), nn.ReLU()],
        *(Residual(*normed(128, 128), nn.ReLU(), *normed(128, 128)) for _ in range(5)),
        *upsampled(128, 64),
        *upsampled(64, 32),
        *conv(32, 3, kernel=9),
    )


def layouts(image: Tensor, precisions: list[torch.dtype]) -> dict[str, Work]:
    """Return name -> a function that makes a forward pass, for each layout in each precision."""
    device, blend = image.device, torch.ones(1, 1, device=image.device)
    picture = image.contiguous(memory_format=torch.channels_last)
    work: dict[str, Work] = {}
    for name, layout in LAYOUTS.items():
        network = StyleNetwork(layout, styles=1)
        randomize(network, seed=0)
        for dtype in precisions:
            fast = deployed(network, dtype).to(device)
            work[f"{name}, {str(dtype).removeprefix('torch.')}"] = partial(fast, picture, blend)
    return work


class Convolutions(TorchFunctionMode):
    """A context that stores each call of conv2d in `works`, so that the call can be made again."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Work] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Make a call; store it if it is one of conv2d."""
        work = partial(function, *args, **(kwargs or {}))
        if function is torch.conv2d:
            self.works.append(work)
        return work()


def convolutions_of(work: Work) -> Work:
    """Return a function that makes only the convolutions of `work`, which is a forward pass."""
    with Convolutions() as kept:
        work()
    return lambda: [convolution() for convolution in kept.works]


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=512, help="of the picture (default 512)")
    parser.add_argument("--height", type=int, default=384, help="of the picture (default 384)")
    parser.add_argument("--rounds", type=int, default=9, help="timed passes of each (default 9)")
    parser.add_argument("--device", default="cpu", help="as torch calls it (default cpu)")
    return parser.parse_args()


@torch.inference_mode()
def main() -> None:
    """Measure every row and print one table."""
    options = arguments()
    keep_freed_memory()
    device = choose_device(options.device)
    image = torch.rand(1, 3, options.height, options.width, device=device)
    precisions = [torch.float32, *([torch.bfloat16] if has_native_bfloat16(device) else [])]
    work: dict[str, Work] = {REFERENCE: partial(reference().eval().to(device), 255 * image)}
    work |= layouts(image, precisions)
    alone = {f"{name}, alone": convolutions_of(one) for name, one in work.items()}
    seconds = seconds_by_round({**work, **alone}, options.rounds, device)
    rows = []
    for name in work:
        times, own = seconds[name], seconds[f"{name}, alone"]
        ratios = [a / b for a, b in zip(seconds[REFERENCE], times, strict=True)]
        shares = [a / b for a, b in zip(times, own, strict=True)]
        rows.append(
            [name, *(str(Spread.of(each)) for each in ([1 / t for t in times], ratios, shares))]
        )
    print(table(["network", "pictures a second", "times as fast", ": convolutions"], rows))
    machine = describe_machine(device)
    print(
        f"{options.width} x {options.height} pixels, median (quartiles) of {options.rounds}; "
        f"{machine['device']}, {machine['instructions']}, threads: {machine['threads']}, "
        f"torch {machine['torch']}"
    )


if __name__ == "__main__":
    main()
