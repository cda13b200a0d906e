"""A frozen network that returns the activations of the layers whose names are given.

The network's max pooling saves no indices for the backward pass.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.errors import UserError

# Arguments of `torch.ops.aten.max_pool2d_with_indices` for windows of 2 x 2 positions.
WINDOW = [2, 2]
PADDING, DILATION, CEIL = [0, 0], [1, 1], False


class Normalize(nn.Module):
    """This layer computes (image - mean) / std per channel of sRGB images (N, 3, H, W)."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, float, float], std: tuple[float, float, float]) -> None:
        super().__init__()
        self.exact = torch.tensor([mean, std], dtype=torch.float64).view(2, 1, 3, 1, 1)
        self.register_buffer("mean", self.exact[0].float())
        self.register_buffer("std", self.exact[1].float())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or cast the module; in float64, mean and std are taken from `exact`, not rounded."""
        super()._apply(fn, recurse)
        if self.mean.dtype == torch.float64:
            self.mean, self.std = self.exact.to(self.mean)
        return self

    def forward(self, image: Tensor) -> Tensor:
        """Return (image - mean) / std in the network's dtype."""
        # It is computed in the image's dtype. Only the result is rounded to the network's dtype.
        return ((image - self.mean.to(image)) / self.std.to(image)).to(self.mean.dtype)


class MaxPoolFunction(Function):
    """This Function takes the maximum of each 2 x 2 window.

    If several positions hold the maximum, the first of them gets the gradient.

    torch's pool saves an 8-byte index for every maximum. In bfloat16, these indices would be a
    quarter of the memory that VGG-19 saves for backward. The ReLU before the pool saves x in any
    case, so backward computes the indices again from x.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Return the maximum of each window; an odd last row or column is dropped.

        On the CPU, three calls of `torch.maximum` take less time than torch's pool, which also
        computes indices (measured on x86). On a GPU, the pool is one kernel, not three, and moves
        no more bytes than the three. Its indices are not kept.
        """
        if x.device.type != "cpu":
            pooled: Tensor = torch.ops.aten.max_pool2d_with_indices(x, WINDOW)[0]
            return pooled
        height, width = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
        top, bottom = x[..., 0:height:2, :width], x[..., 1:height:2, :width]
        # The first two maxima compare neighbours within a row, so each row is read only once.
        upper = torch.maximum(top[..., 0::2], top[..., 1::2])
        lower = torch.maximum(bottom[..., 0::2], bottom[..., 1::2])
        return torch.maximum(upper, lower)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save x, the input."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Compute the indices of the maxima again, and pass the gradient to these positions."""
        (grad_output,) = grads
        (x,) = ctx.saved_tensors
        aten = torch.ops.aten
        _, positions = aten.max_pool2d_with_indices(x.detach(), WINDOW)
        grad: Tensor = aten.max_pool2d_with_indices_backward(
            grad_output, x, WINDOW, WINDOW, PADDING, DILATION, CEIL, positions
        )
        return grad


def max_pool(x: Tensor) -> Tensor:
    """Take the maximum of each window of 2 x 2 positions; equal to `torch.max_pool2d(x, 2)`.

    Args:
        x: (N, C, H, W), floating point, any memory format; H and W at least 2.

    Returns:
        (N, C, H // 2, W // 2).
    """
    result: Tensor = MaxPoolFunction.apply(x)
    return result


class MaxPool(nn.Module):
    """This module applies `max_pool`; it has no state."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the maxima (N, C, H // 2, W // 2) of x (N, C, H, W)."""
        return max_pool(x)


class FeatureExtractor(nn.Module):
    """A feature extractor is a sequence of named layers that stays in eval mode.

    The preprocessing is part of the network: callers pass sRGB images in [0, 1]. The layers are in
    the order of evaluation. `content_gains` maps a layer's name to a factor on the content loss at
    this layer, so that one content weight suits several networks. The default factor is 1.
    """

    def __init__(
        self,
        preprocess: nn.Module,
        layers: Mapping[str, nn.Module],
        content_gains: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self.content_gains = dict(content_gains or {})
        self.preprocess = preprocess
        self.layers = nn.ModuleDict(layers)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in eval mode for any `mode`, because this network is never trained."""
        return super().train(False)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the layers compute."""
        return next(self.layers.parameters()).dtype

    @property
    def precision(self) -> str:
        """The name of `dtype`, such as "bfloat16"."""
        return str(self.dtype).removeprefix("torch.")

    def ended_at(self, layers: Iterable[str]) -> "FeatureExtractor":
        """Return the network up to the deepest of `layers`; the modules are shared, not copied.

        Raises UserError if a name is no layer of this network, or if `layers` is empty.
        """
        return FeatureExtractor(self.preprocess, self._needed(set(layers)), self.content_gains)

    def wrapped(self) -> "FeatureExtractor":
        """Return the network with circular padding, for seamless pictures; weights are shared."""
        from styletransfer.features.wrap_pad import Wrapped

        return self.changed(lambda x: Wrapped(x) if isinstance(x, nn.Conv2d) else x)

    def changed(self, change: Callable[[nn.Module], nn.Module]) -> "FeatureExtractor":
        """Return a network in which `change(layer)` replaces each layer."""
        layers = {name: change(layer) for name, layer in self.layers.items()}
        return FeatureExtractor(self.preprocess, layers, self.content_gains)

    def forward(self, image: Tensor, layers: Iterable[str]) -> dict[str, Tensor]:
        """Return layer -> activation (N, C, h, w) for an image (N, 3, H, W) in [0, 1]."""
        wanted = set(layers)
        features: dict[str, Tensor] = {}
        activation = self.preprocess(image)
        for name, layer in self._needed(wanted).items():
            activation = layer(activation)
            if name in wanted:
                features[name] = activation
        return features

    def _needed(self, wanted: set[str]) -> dict[str, nn.Module]:
        """Return the layers up to the deepest of `wanted`, with in-place ReLUs where possible.

        The convolution before a ReLU saves only its input for the backward pass. Its output may
        therefore be overwritten, unless that output is itself in `wanted`.
        """
        if unknown := sorted(wanted - set(self.layers)):
            raise UserError(
                f"unknown layer {', '.join(unknown)}; this network has {', '.join(self.layers)}"
            )
        if not wanted:
            raise UserError("no layer was asked for; name at least one content or style layer")
        names = list(self.layers)
        deepest = max(map(names.index, wanted))
        needed: dict[str, nn.Module] = {}
        for previous, name in zip(["", *names], names[: deepest + 1], strict=False):
            layer = self.layers[name]
            if isinstance(layer, nn.ReLU):
                layer = nn.ReLU(inplace=previous not in wanted)
            needed[name] = layer
        return needed

    def stride(self, layer: str) -> int:
        """Return how many image pixels, along each axis, one position of `layer` covers."""
        return int(2 ** sum(map(is_pool, self._needed({layer}).values())))


def is_pool(layer: nn.Module) -> bool:
    """Tell whether a layer is a pool, which halves height and width, rounding down."""
    return isinstance(layer, MaxPool | nn.AvgPool2d)


def optimize_for_inference(
    extractor: FeatureExtractor, device: torch.device, dtype: torch.dtype
) -> FeatureExtractor:
    """Move a network to `device` and `dtype`, make its kernels channels_last, and return it."""
    return extractor.to(device, dtype).to(memory_format=torch.channels_last)
