"""Makes a network ready to be evaluated many times: cast once, laid out and convolved for speed."""

import math

import torch
from torch import Tensor, nn

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions import transform_kernels, winograd_conv

# Where Winograd's way was the faster one on x86 cores, by at least a fifth in float32. bfloat16 is
# too coarse for its transforms, and CUDA's convolutions choose their own way.
FEWER_CHANNELS, MORE_CHANNELS, POSITIONS = 128, 192, 24 * 24


class WinogradConv2d(nn.Conv2d):
    """A convolution of 3 x 3 whose weights have ceased to change.

    It shares them, and adds four times as many numbers: the weights, transformed.
    """

    kernels: Tensor

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__(conv.in_channels, conv.out_channels, 3, padding=1, device="meta")
        self.weight, self.bias = conv.weight, conv.bias
        self.register_buffer("kernels", transform_kernels(conv.weight.detach()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return (1, out_channels, H, W) for x (1, in_channels, H, W)."""
        if math.prod(x.shape[2:]) < POSITIONS:
            return super().forward(x)
        return winograd_conv(x, self.kernels, self.bias)


def optimize_for_inference(
    extractor: FeatureExtractor, device: torch.device, dtype: torch.dtype
) -> FeatureExtractor:
    """Return the network on `device` in `dtype`; its weights must not change any more."""
    extractor.to(device, dtype).to(memory_format=torch.channels_last)
    return FeatureExtractor(
        extractor.preprocess,
        {
            name: WinogradConv2d(layer) if isinstance(layer, nn.Conv2d) and _pays(layer) else layer
            for name, layer in extractor.layers.items()
        },
        extractor.content_gains,
    )


def _pays(layer: nn.Conv2d) -> bool:
    channels = sorted((layer.in_channels, layer.out_channels))
    return (
        (layer.weight.device.type, layer.weight.dtype) == ("cpu", torch.float32)
        and (layer.kernel_size, layer.padding, layer.padding_mode) == ((3, 3), (1, 1), "zeros")
        and channels[0] >= FEWER_CHANNELS
        and channels[1] >= MORE_CHANNELS
    )
