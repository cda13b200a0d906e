"""A narrow VGG that starts life as a copy of a wide one, fitted layer by layer.

Training a narrow network from random weights spends its first hours finding what the teacher
already knows. Here each layer of the student takes over chosen channels of the teacher's layer:
channels by greedy column selection, weights by least squares on what the student's own previous
layer really outputs, so that every layer compensates for the losses of those before it (the idea
of channel pruning by reconstruction, arXiv:1707.06168).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import Widths, build
from tools.distill.config import channels_of, conv_widths

# Positions sampled per picture batch and layer for the least-squares fit.
POSITIONS = 6000
# Relative ridge: keeps nearly dead inputs from taking huge weights.
RIDGE = 1e-4


@torch.no_grad()
def balance(teacher: FeatureExtractor, images: Tensor) -> None:
    """Rescale the teacher in place so that every ReLU has unit root mean square on `images`.

    A ReLU network is positively homogeneous: scaling a convolution and undoing it in the next
    changes no direction in feature space (Gatys et al. 2016 did the same with the mean).
    """
    convs = [layer for layer in teacher.layers.values() if isinstance(layer, nn.Conv2d)]
    activation = teacher.preprocess(images)
    for layer in teacher.layers.values():
        if isinstance(layer, nn.Conv2d):
            rms = layer(activation).relu_().square().mean().sqrt().item()
            layer.weight.div_(rms)
            # The next layers' inputs come scaled; only their biases still carry the old scale.
            for conv in convs[convs.index(layer) :]:
                assert conv.bias is not None
                conv.bias.div_(rms)
        activation = layer(activation)


def choose_channels(covariance: Tensor, importance: Tensor, count: int) -> Tensor:
    """Return `count` channel indices whose span best explains all channels, in ascending order.

    Args:
        covariance: (C, C) second moments of the activations.
        importance: (C,) how much the next layer listens to each channel.
        count: how many channels to choose.
    """
    residual = (covariance * importance[:, None] * importance[None, :]).double()
    chosen: list[int] = []
    for _ in range(count):
        diagonal = residual.diagonal().clamp_min(1e-12)
        gain = residual.square().sum(0) / diagonal
        if chosen:
            gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        column = residual[:, best] / diagonal[best].sqrt()
        residual = residual - torch.outer(column, column)
    return torch.tensor(sorted(chosen))


@torch.no_grad()
def inherit(
    teacher: FeatureExtractor,
    widths: Widths,
    images: Sequence[Tensor],
    start: FeatureExtractor | None = None,
    frozen: int = 0,
) -> tuple[FeatureExtractor, dict[str, Tensor]]:
    """Return a student fitted to `teacher` and, per convolution not frozen, the channels it took.

    Args:
        teacher: a balanced network of the same layout, at least as wide everywhere.
        widths: the student's output channels, by block.
        images: batches of pictures (N, 3, H, W) in [0, 1] to fit on.
        start: an earlier student. Its convolutions are taken over where they fit, see
            `taken_over`, and only the others are fitted.
        frozen: how many of its convolutions, from the first, are taken as they are. The others are
            scaled to the teacher, and the channels they stand for are found.
    """
    student = build(widths, padding="zeros")
    wanted = [teacher.preprocess(batch) for batch in images]
    ours, earlier = list(wanted), list(wanted)
    channels: dict[str, Tensor] = {}
    order, scale = list(conv_widths(widths)), 1.0
    begun = nn.ModuleDict() if start is None else start.layers
    reused = [] if start is None else taken_over(start, teacher, widths)
    for name, layer in student.layers.items():
        wanted = [teacher.layers[name](x) for x in wanted]
        if name in begun:
            earlier = [begun[name](x) for x in earlier]
        if isinstance(layer, nn.Conv2d):
            before, is_frozen = scale, name in order[:frozen]
            if name in begun and not is_frozen:
                recognized, scale = _recognized(earlier, wanted)
            if name in reused:
                layer.load_state_dict(begun[name].state_dict())
                if not is_frozen:
                    channels[name] = recognized
                    layer.weight.div_(before)
                    for parameter in layer.parameters():
                        parameter.mul_(scale)
            else:
                channels[name] = _chosen(name, order, teacher, wanted, layer.out_channels)
                _fit(layer, ours, [x[:, channels[name]] for x in wanted])
        ours = [layer(x) for x in ours]
    return student, channels


def taken_over(start: FeatureExtractor, teacher: FeatureExtractor, widths: Widths) -> list[str]:
    """Return the convolutions of `start` that a student with these widths can begin with.

    They are as wide as planned, and so is what they see: all of the teacher's channels, or those of
    a convolution that is taken over itself.
    """
    widths_of_start, full = channels_of(start), channels_of(teacher)
    names: list[str] = []
    sees_the_same = True
    for name, width in conv_widths(widths).items():
        as_wide = widths_of_start.get(name) == width
        if as_wide and sees_the_same:
            names.append(name)
        sees_the_same = as_wide and (width == full[name] or name in names)
    return names


def _recognized(ours: list[Tensor], wanted: list[Tensor]) -> tuple[Tensor, float]:
    """Return which of the teacher's channels each of ours is most like, and the factor to them."""
    mine, theirs = (
        torch.cat([x.relu().transpose(0, 1).flatten(1) for x in batches], 1)
        for batches in (ours, wanted)
    )
    channels = torch.arange(len(mine))
    if len(mine) < len(theirs):
        channels = (mine @ theirs.T / theirs.norm(dim=1).clamp_min(1e-12)).argmax(1)
    return channels, ((mine * theirs[channels]).sum() / mine.square().sum()).item()


def _chosen(
    name: str, order: list[str], teacher: FeatureExtractor, wanted: list[Tensor], count: int
) -> Tensor:
    """Return the channels of the teacher's convolution that the student's is to have."""
    total = wanted[0].shape[1]
    if count == total:
        return torch.arange(total)
    flat = torch.cat([x.relu().transpose(0, 1).flatten(1)[:, ::7] for x in wanted], 1)
    importance = torch.ones(total)
    if name != order[-1]:
        following = teacher.layers[order[order.index(name) + 1]]
        assert isinstance(following, nn.Conv2d)
        importance = following.weight.square().sum((0, 2, 3)).sqrt()
    return choose_channels(flat @ flat.T / flat.shape[1], importance, count)


def _fit(conv: nn.Conv2d, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Least squares of `outputs` on 3 x 3 patches of `inputs`, with a small ridge."""
    size = conv.in_channels * 9 + 1
    normal = torch.zeros(size, size)
    right = torch.zeros(size, conv.out_channels)
    generator = torch.Generator().manual_seed(0)
    for x, y in zip(inputs, outputs, strict=True):
        patches = F.unfold(x, 3, padding=1).transpose(1, 2).reshape(-1, size - 1)
        values = y.permute(0, 2, 3, 1).reshape(-1, conv.out_channels)
        sample = torch.randperm(len(values), generator=generator)[:POSITIONS]
        patches = F.pad(patches[sample], (0, 1), value=1.0)
        normal += patches.T @ patches
        right += patches.T @ values[sample]
    normal.diagonal().add_(RIDGE * normal.diagonal().mean())
    solution = torch.linalg.solve(normal, right)
    conv.weight.copy_(solution[:-1].T.reshape(conv.weight.shape))
    assert conv.bias is not None
    conv.bias.copy_(solution[-1])
