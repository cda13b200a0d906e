"""VGG-16 and VGG-19 (Simonyan and Zisserman 2014), and narrow networks of the same layout."""

import math
from collections.abc import Mapping, Sequence
from http.client import HTTPException

import torch
from torch import Tensor, nn

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor, MaxPool, Normalize

Widths = Sequence[Sequence[int]]

# Output channels of each convolution, by block; arXiv:1409.1556, table 1, columns D and E.
WIDTHS: Mapping[str, Widths] = {
    "vgg16": ((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3),
    "vgg19": ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4),
}
# Mean and standard deviation of ImageNet's RGB values, as torchvision's weights expect them.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Mean of ImageNet's red, green and blue values from 0 to 255, as Caffe's weights expect them.
CAFFE_MEAN = (123.68, 116.779, 103.939)
# Prefix of keys in a weights file: "content_gain.LAYER" is a factor on the content loss at LAYER.
CONTENT_GAIN = "content_gain."


def state_keys(widths: Widths) -> dict[str, str]:
    """Return convolution name -> torchvision's key prefix, such as conv2_1 -> features.5."""
    keys: dict[str, str] = {}
    position = 0
    for block, channels in enumerate(widths, start=1):
        for index in range(1, len(channels) + 1):
            keys[f"conv{block}_{index}"] = f"features.{position}"
            position += 2  # the convolution and its ReLU
        position += 1  # the pool that ends the block
    return keys


class ReplicatingConv(nn.Conv2d):
    """This 3 x 3 convolution replicates the border of its input by one position."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, out_channels, H, W) for x (N, in_channels, H, W).

        On a GPU `torch.cat` pads: the backward of torch's `pad` adds up a corner's gradients there
        in an order that varies, so the last bits of two equal runs would differ.
        """
        if x.device.type == "cpu":
            return super().forward(x)
        for dim in (2, 3):
            x = torch.cat([x.narrow(dim, 0, 1), x, x.narrow(dim, -1, 1)], dim)
        return torch.conv2d(x, self.weight, self.bias)


def build(
    widths: Widths,
    *,
    pooling: str = "max",
    padding: str = "zeros",
    preprocessing: str = "imagenet",
) -> FeatureExtractor:
    """Return a frozen VGG-shaped network with uninitialised weights; see `FeaturesConfig`.

    `widths` are the output channels of each convolution, by block; a 2 x 2 pool stands between
    blocks. Gatys et al. 2016 found average pooling more pleasing. If `padding` is "replicate", the
    first convolution replicates the picture's border, and the others pad with zeros. This avoids
    the dark frame that zero padding causes along the border.
    """
    layers: dict[str, nn.Module] = {}
    in_channels = 3
    for block, channels in enumerate(widths, start=1):
        if block > 1:
            layers[f"pool{block - 1}"] = MaxPool() if pooling == "max" else nn.AvgPool2d(2)
        for index, out_channels in enumerate(channels, start=1):
            replicates = padding == "replicate" and not layers
            conv = (ReplicatingConv if replicates else nn.Conv2d)(
                in_channels,
                out_channels,
                kernel_size=3,
                padding=1,
                padding_mode="replicate" if replicates else "zeros",
                device="meta",  # saves the time of the default initialisation
            )
            layers[f"conv{block}_{index}"] = conv
            layers[f"relu{block}_{index}"] = nn.ReLU()
            in_channels = out_channels
    for layer in layers.values():
        # `Module.to_empty` does the same, but it would import sympy, which is slow.
        for name, parameter in list(layer.named_parameters()):
            setattr(layer, name, nn.Parameter(torch.empty(parameter.shape)))
    normalize = Normalize((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    if preprocessing == "imagenet":
        normalize = Normalize(IMAGENET_MEAN, IMAGENET_STD)
    elif preprocessing == "caffe":  # 255 x - mean, for x in [0, 1]; `load` handles BGR order
        red, green, blue = (mean / 255 for mean in CAFFE_MEAN)
        normalize = Normalize((red, green, blue), (1 / 255,) * 3)
    return FeatureExtractor(normalize, layers).requires_grad_(False)


def load(
    network: FeatureExtractor,
    state: Mapping[str, Tensor],
    widths: Widths,
    origin: str,
    is_bgr: bool = False,
) -> None:
    """Copy the tensors `state`, with torchvision's names, into `network`, except the classifier's.

    If `is_bgr`, the first convolution of `state` expects blue, green, red, and `load` reverses the
    channels of its kernels.

    `state` may also hold content gains: 0-d tensors with the name "content_gain.LAYER".

    Raises UserError if a tensor is missing, unexpected, misshapen, not of floats or not finite, if
    a kernel is all zeros, or if a gain is not positive.
    """
    gains = {key: gain for key, gain in state.items() if key.startswith(CONTENT_GAIN)}
    for key, gain in gains.items():
        if gain.dim() or not 0 < gain < math.inf:
            raise UserError(f"{origin} holds a {key} that is no positive number; get it again")
    network.content_gains = {key.removeprefix(CONTENT_GAIN): gains[key].item() for key in gains}
    expected = {
        f"{key}.{kind}": getattr(network.layers[name], kind)
        for name, key in state_keys(widths).items()
        for kind in ("weight", "bias")
    }
    aside = ("classifier.", CONTENT_GAIN)
    state = {key: value for key, value in state.items() if not key.startswith(aside)}
    problems = {
        "missing": [key for key in expected if key not in state],
        "unexpected": [key for key in state if key not in expected],
        "misshapen:": [
            f"{key} is {tuple(state[key].shape)}, not {tuple(target.shape)}"
            for key, target in expected.items()
            if key in state and state[key].shape != target.shape
        ],
    }
    if wrong := [
        f"{what} {', '.join(keys[:3])}{' and more' if len(keys) > 3 else ''}"
        for what, keys in problems.items()
        if keys
    ]:
        raise UserError(f"{origin} holds weights of another network: {'; '.join(wrong)}")
    if whole := [key for key in expected if not state[key].is_floating_point()]:
        raise UserError(f"{origin} holds {state[whole[0]].dtype} in {whole[0]}; save it as floats")
    state = {key: state[key].float() for key in expected}
    if broken := [key for key in expected if not state[key].isfinite().all()]:
        raise UserError(f"{origin} holds values that are not finite in {broken[0]}; get it again")
    if empty := [key for key in expected if key.endswith("weight") and not state[key].any()]:
        raise UserError(f"{origin} holds nothing but zeros in {empty[0]}; get it again")
    with torch.no_grad():
        for key, target in expected.items():
            target.copy_(state[key])
        if is_bgr:
            first = network.layers["conv1_1"]
            assert isinstance(first, nn.Conv2d)
            first.weight.copy_(first.weight.flip(1))


def widths_of(state: Mapping[str, Tensor], origin: str) -> Widths:
    """Return the output channels of each convolution, by block, from VGG-19-like weights `state`.

    The network may end after any convolution. Raises UserError if `state` lacks the first kernels
    of VGG-19, or if kernels are not 4-d.
    """
    widths: list[list[int]] = []
    for name, key in state_keys(WIDTHS["vgg19"]).items():
        if f"{key}.weight" not in state:
            break
        if state[f"{key}.weight"].dim() != 4:
            raise UserError(f"{origin} holds no kernels in {key}.weight; it is of another network")
        if name.endswith("_1"):
            widths.append([])
        widths[-1].append(state[f"{key}.weight"].shape[0])
    if not widths:
        raise UserError(f"{origin} holds no features.0.weight; it is not a VGG-19-shaped network")
    return widths


def randomize(network: nn.Module, seed: int) -> None:
    """Fill the convolutions with He-normal weights (arXiv:1502.01852) and zero biases."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def pretrained_state(name: str) -> Mapping[str, Tensor]:
    """Download torchvision's ImageNet weights and check their hash; raise UserError on failure."""
    import torchvision  # imported here because it is slow to import, and only a download needs it

    weights = torchvision.models.get_model_weights(name)["IMAGENET1K_V1"]
    try:
        state: Mapping[str, Tensor] = weights.get_state_dict(progress=True, check_hash=True)
    except (OSError, HTTPException, RuntimeError) as error:  # URLError is an OSError
        raise UserError(
            f"{name}'s weights cannot be downloaded ({error}); use features=bundled, give a file "
            f"with features.weights=PATH, or features.weights=random for a lesson"
        ) from error
    return state
