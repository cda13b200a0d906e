"""The plain loop: style transfer in the simplest form, as in PyTorch's tutorial.

The loop works in float32 and NCHW, at one scale, from the content image. Autograd differentiates
all losses, torch's L-BFGS has its defaults, and pixels are clamped in place before each evaluation.
`scripts/benchmark.py` divides by the loop's time and memory. The loop uses no code of the package,
so that the reference is independent. As a program it paints one pair:
`python -m benchmarks.plain CONTENT STYLE OUTPUT.png VGG19.safetensors [EVALUATIONS]`.
"""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

# Mean and standard deviation of ImageNet's RGB values, which torchvision's weights expect.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
# Layers of Gatys et al. 2016, each with the factor that neural-style gives it. The factors suit the
# first published VGG-19; the features of torchvision's VGG-19 are about a fiftieth as large.
CONTENT_WEIGHTS = {"relu4_2": 5.0}
STYLE_WEIGHTS = {f"relu{block}_1": 100.0 for block in range(1, 6)}


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
    """A PlainLoop optimises one pastiche from a content image and a style image.

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
        self.start = content.detach().contiguous()
        self.picture = self.start
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

    def run(self, evaluations: int) -> list[float]:
        """Optimise from the content image; keep the result (1, 3, H, W) in `self.picture`.

        Return the objective at each evaluation. A step of torch's L-BFGS makes about 20
        evaluations; the last step is completed, so that there may be more than `evaluations`.
        """
        picture = self.start.clone().requires_grad_()
        optimizer = torch.optim.LBFGS([picture])
        losses: list[Tensor] = []

        def closure() -> Tensor:
            with torch.no_grad():
                picture.clamp_(0, 1)
            optimizer.zero_grad()
            loss = self.objective(picture)
            loss.backward()
            losses.append(loss.detach())
            return loss

        while len(losses) < evaluations:
            optimizer.step(closure)
        self.picture = picture.detach().clamp(0, 1)
        return [loss.item() for loss in losses]


def read_picture(path: str) -> Tensor:
    """Return a picture file as (1, 3, H, W) in [0, 1], float32."""
    with Image.open(path) as file:
        pixels = np.array(file.convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255


def loop_on(state: Mapping[str, Tensor], content: str, style: str) -> PlainLoop:
    """Return the loop for two picture files, with CONTENT_WEIGHTS and STYLE_WEIGHTS."""
    pictures = read_picture(content), read_picture(style)
    return PlainLoop(state, *pictures, CONTENT_WEIGHTS, STYLE_WEIGHTS)


def read_state(path: str) -> dict[str, Tensor]:
    """Return the float32 tensors of a .safetensors file by name."""
    return {name: tensor.float() for name, tensor in load_file(path).items()}


def main(words: Sequence[str]) -> None:
    """Paint as the words CONTENT STYLE OUTPUT WEIGHTS [EVALUATIONS, default 300] say."""
    content, style, output, weights, *evaluations = words
    loop = loop_on(read_state(weights), content, style)
    loop.run(int(evaluations[0]) if evaluations else 300)
    pixels = (loop.picture[0].permute(1, 2, 0) * 255).round().to(torch.uint8)
    Image.fromarray(pixels.numpy()).save(output)


if __name__ == "__main__":
    main(sys.argv[1:])
