"""The plain loop: the losses of style transfer and their gradient, as in PyTorch's tutorial.

It works in float32 and NCHW, and autograd differentiates all losses. `scripts/benchmark.py` divides
other times and memories by those of this loop. The file uses no code of the package, so that the
reference is independent.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

# Mean and standard deviation of ImageNet's RGB values, which torchvision's weights expect.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def build_network(state: Mapping[str, Tensor], padding: str = "zeros") -> nn.Sequential:
    """Return VGG's convolutions, ReLUs and maximum pools, named conv1_1, relu1_1, ..., frozen.

    Args:
        state: torchvision's name (features.0.weight, ...) -> tensor; other names are ignored.
        padding: padding mode of the first convolution: zeros, as in training, or replicate.
    """
    numbers = sorted({int(key.split(".")[1]) for key in state if key.startswith("features.")})
    network = nn.Sequential()
    block, index, expected = 1, 0, 0
    for number in numbers:
        index += 1
        if number != expected:  # a gap in torchvision's numbers is a pool
            network.add_module(f"pool{block}", nn.MaxPool2d(2))
            block, index = block + 1, 1
        expected = number + 2
        weight, bias = state[f"features.{number}.weight"], state[f"features.{number}.bias"]
        conv = nn.Conv2d(
            weight.shape[1],
            weight.shape[0],
            kernel_size=3,
            padding=1,
            padding_mode="zeros" if number else padding,  # type: ignore[arg-type]
            device=weight.device,
            dtype=weight.dtype,
        )
        conv.load_state_dict({"weight": weight, "bias": bias})
        network.add_module(f"conv{block}_{index}", conv)
        network.add_module(f"relu{block}_{index}", nn.ReLU())
    return network.eval().requires_grad_(False)


def gram_matrix(features: Tensor) -> Tensor:
    """Return F F^T / (C H W), (C, C), of features (1, C, H, W)."""
    rows = features.view(features.shape[1], -1)
    return rows @ rows.t() / rows.numel()


class PlainLoop:
    """A PlainLoop has the objective of a content image and a style image, and its gradient.

    Args:
        state: the network's tensors; see `build_network`.
        content: content image (1, 3, H, W), sRGB in [0, 1], dtype and device of the network.
        style: style image (1, 3, h, w), with the same range, dtype and device.
        content_weights: layer -> factor of mean((F - P)^2); F are features, P those of the content.
        style_weights: layer -> factor of mean((G - A)^2); G are Gram matrices, A the style's.
        padding: see `build_network`.
    """

    def __init__(
        self,
        state: Mapping[str, Tensor],
        content: Tensor,
        style: Tensor,
        content_weights: Mapping[str, float],
        style_weights: Mapping[str, float],
        padding: str = "zeros",
    ) -> None:
        self.content_weights, self.style_weights = dict(content_weights), dict(style_weights)
        network = build_network(state, padding)
        names = [name for name, _ in network.named_children()]
        deepest = max(names.index(name) for name in (*content_weights, *style_weights))
        self.network = network[: deepest + 1]
        with torch.no_grad():
            of_content, of_style = self.features(content), self.features(style)
            self.contents = {name: of_content[name] for name in content_weights}
            self.grams = {name: gram_matrix(of_style[name]) for name in style_weights}

    def features(self, image: Tensor) -> dict[str, Tensor]:
        """Return layer -> activation at an image (1, 3, H, W), for the layers with a loss."""
        mean, std = (
            torch.tensor(values, dtype=image.dtype, device=image.device).view(1, 3, 1, 1)
            for values in (MEAN, STD)
        )
        activation = (image - mean) / std
        found: dict[str, Tensor] = {}
        for name, layer in self.network.named_children():
            activation = layer(activation)
            if name in self.content_weights or name in self.style_weights:
                found[name] = activation
        return found

    def objective(self, image: Tensor) -> Tensor:
        """Return the weighted sum of all losses at an image (1, 3, H, W), 0-d."""
        features = self.features(image)
        loss = image.new_zeros(())
        for name, weight in self.content_weights.items():
            loss = loss + weight * functional.mse_loss(features[name], self.contents[name])
        for name, weight in self.style_weights.items():
            gram = gram_matrix(features[name])
            loss = loss + weight * functional.mse_loss(gram, self.grams[name])
        return loss

    def evaluate(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective at an image (1, 3, H, W), 0-d, and its gradient there."""
        leaf = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
        loss = self.objective(leaf)
        loss.backward()
        assert leaf.grad is not None
        return loss.detach(), leaf.grad
