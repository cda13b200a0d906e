"""Pictures of any size: in strips, with the instance norms' statistics of the whole picture.

A norm needs the mean and the variance of a whole picture before any of its output is known. So a
segment of the network is run in strips once for each of its norms, as far as that norm, to add up
what the norm sees, and once more for its output. The result is the whole picture's, but for
rounding. Kept are the features between two segments, at a quarter of the picture's height and
width; within a segment each convolution is run again for every norm behind it, which makes two and
a half times the multiplications.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from styletransfer.networks.deploy import measured
from styletransfer.networks.johnson import STRIDE, Segment, Statistics, StyleNetwork, padded

# Rows of its input that a strip reads beyond its own: a multiple of STRIDE, above what a position
# sees (7 in the encoder, 2 in a residual block and in the decoder).
HALO = 2 * STRIDE


@dataclass(frozen=True)
class Strip:
    """Rows of a segment's input: those to `read`, and among all those that are its `own`."""

    read: slice
    own: slice

    def part(self, features: Tensor) -> Tensor:
        """Return its own rows of what a segment made (N, C, h, W) of the rows it read."""
        scale = features.shape[2] / (self.read.stop - self.read.start)
        first = int((self.own.start - self.read.start) * scale)
        rows = int((self.own.stop - self.own.start) * scale)
        return features[:, :, first : first + rows]


def in_strips(network: StyleNetwork, image: Tensor, blend: Tensor, rows: int) -> Tensor:
    """Return what `network(image, blend)` does, in strips of `rows` >= STRIDE rows of the picture.

    image is (1, 3, H, W), sRGB in [0, 1], and blend (1, S); see `StyleNetwork.forward`.
    """
    x = padded(image) - 0.5
    height = x.shape[2]
    for segment in network.segments:
        assert isinstance(segment, Segment)
        # Of the segment's own input, which may be a quarter of the picture.
        own = max(STRIDE, rows * x.shape[2] // height // STRIDE * STRIDE)
        x = _segment(segment, x, blend, own)
    return x[:, :, : image.shape[2], : image.shape[3]]


def strips(height: int, rows: int) -> Iterator[Strip]:
    """Cut `height` rows into strips of `rows`, the last one perhaps smaller."""
    for start in range(0, height, rows):
        stop = min(height, start + rows)
        yield Strip(slice(max(0, start - HALO), min(height, stop + HALO)), slice(start, stop))


def _segment(segment: Segment, x: Tensor, blend: Tensor, rows: int) -> Tensor:
    statistics: list[Statistics] = []
    for _ in segment.convs:
        statistics.append(_measured(segment, x, blend, statistics, rows))
    whole, start = torch.empty(0), 0
    for strip in strips(x.shape[2], rows):
        made = segment(x[:, :, strip.read], blend, statistics)
        if start == 0:
            height = x.shape[2] * made.shape[2] // (strip.read.stop - strip.read.start)
            size = (*made.shape[:2], height, made.shape[3])
            like: dict[str, Any] = {"dtype": made.dtype, "device": made.device}
            whole = torch.empty(size, **like, memory_format=torch.channels_last)
        part = strip.part(made)
        whole[:, :, start : start + part.shape[2]] = part
        start += part.shape[2]
    return whole


def _measured(
    segment: Segment, x: Tensor, blend: Tensor, known: Sequence[Statistics], rows: int
) -> Statistics:
    """Return the statistics of the norm that follows the known ones, over all strips."""
    counts, means, seconds = [], [], []
    for strip in strips(x.shape[2], rows):
        part = strip.part(segment.before_norm(x[:, :, strip.read], blend, known))
        statistics = measured(part)
        mean, variance = (value.double().cpu() for value in statistics)
        counts.append(part.shape[2])
        means.append(mean)
        seconds.append(variance + mean.square())
    weights = torch.tensor(counts, dtype=torch.float64) / sum(counts)
    mean = torch.einsum("s,s...->...", weights, torch.stack(means))
    second = torch.einsum("s,s...->...", weights, torch.stack(seconds))
    variance = (second - mean.square()).clamp_min(0)
    return Statistics(mean.to(statistics.mean), variance.to(statistics.variance))
