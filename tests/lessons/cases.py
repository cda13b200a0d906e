"""Every Function of the package, with inputs at which its derivatives are checked."""

from functools import partial

import torch

from styletransfer.features.extractor import max_pool
from styletransfer.features.wrap_pad import wrap_pad
from styletransfer.losses import ContentDistance, MatchDistance
from styletransfer.losses.match import ProductsTap
from styletransfer.losses.moments import gram_matrix, moments
from styletransfer.losses.style import MomentsTap

MARGIN = 0.1  # a maximum of equal values has no derivative; far larger than the step of gradcheck


def draw(generator, *shape):
    """Return a seeded random float64 leaf that requires grad, normally distributed."""
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def all_different(generator, *shape):
    """Return a leaf with values that lie at least MARGIN apart from each other."""
    size = torch.Size(shape).numel()
    order = torch.randperm(size, generator=generator).double()
    return ((order - size / 2) * MARGIN).view(shape).requires_grad_()


def channels_last(x):
    """Return a leaf with the same values, stored channels_last."""
    return x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()


def tapped_moments(x, weights=None):
    """Return the outputs of `MomentsTap`: features, mean, second moment."""
    return MomentsTap.apply(x, True, weights)


def tap(distance, x, target):
    """Return the outputs of the tap of a distance to a target."""
    return distance(target).tap(x)


def cases():
    """Return name -> a function and its inputs.

    `FedTap` is left out, because its backward adds the gradient of a loss outside of its forward.
    """
    generator = torch.Generator().manual_seed(0)
    random, different = partial(draw, generator), partial(all_different, generator)
    odd = random(1, 2, 5, 3)
    layers = {
        "max_pool": (max_pool, (different(2, 3, 2, 4),)),
        "max_pool, odd sides": (max_pool, (different(1, 2, 5, 3),)),
        "max_pool, channels_last": (max_pool, (channels_last(different(1, 3, 2, 4)),)),
        "wrap_pad": (wrap_pad, (odd,)),
    }
    image, target = channels_last(random(1, 3, 2, 4)), random(1, 3, 2, 4).detach()
    weights = torch.arange(8, dtype=torch.float64).view(2, 4) % 3  # three of the weights are 0
    content, match = partial(tap, ContentDistance), partial(tap, MatchDistance)
    losses = {
        "gram_matrix": (gram_matrix, (random(1, 3, 2, 4),)),
        "moments": (moments, (random(1, 3, 2, 4),)),
        "MomentsTap": (tapped_moments, (random(1, 3, 2, 4),)),
        "MomentsTap, one channel": (tapped_moments, (random(1, 1, 3, 2),)),
        "MomentsTap, one pixel": (tapped_moments, (random(1, 3, 1, 1),)),
        "MomentsTap, channels_last": (tapped_moments, (image,)),
        "MomentsTap, weights": (tapped_moments, (random(1, 3, 2, 4), weights)),
        "ContentDistance": (content, (random(1, 3, 2, 4), target)),
        "ContentDistance, channels_last": (content, (image, target)),
        "ProductsTap": (ProductsTap.apply, (random(1, 3, 2, 4), target)),
        "MatchDistance, channels_last": (match, (image, target)),
    }
    return layers | losses
