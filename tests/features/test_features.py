"""Feature networks: names, layout, preprocessing and other options; and the bundled network."""

import pytest
import torch
from helpers import ROOT, VGG19, check_error, metrics_of, picture, state_of, tiny_network
from torch import nn
from torch.nn.functional import conv2d

from styletransfer.features import build, build_features, vgg, weights
from styletransfer.pictures import images
from styletransfer.settings import FeaturesConfig, TrainConfig
from styletransfer.system.files import sha256
from styletransfer.train import paint

CPU = torch.device("cpu")
KEY = "say so with features.preprocessing"
LOSS_LAYERS = ("relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu4_2", "relu5_1")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vgg16", "vgg19"])
def test_keys_are_torchvisions(name):
    """The reference is torchvision's model, built without weights."""
    import torchvision  # takes as long as torch

    with torch.device("meta"):
        model = torchvision.models.get_model(name)
    expected = {
        key.removesuffix(".weight"): len(tensor)
        for key, tensor in model.state_dict().items()
        if key.startswith("features.") and key.endswith(".weight")
    }
    channels = [count for block in vgg.WIDTHS[name] for count in block]
    keys = vgg.state_keys(vgg.WIDTHS[name]).values()
    assert dict(zip(keys, channels, strict=True)) == expected


def test_activations_are_those_of_plain_convolutions(network, content):
    """The image is normalised by ImageNet's mean and deviation; errors are those of float64."""
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(1, 3, 1, 1)
    x, conv = (content - mean) / std, network.layers["conv1_1"]
    torch.testing.assert_close(network.preprocess(content), x, rtol=1e-14, atol=1e-15)
    x = torch.relu(conv2d(x, conv.weight, conv.bias, padding=1))
    torch.testing.assert_close(network(content, ["relu1_1"])["relu1_1"], x, rtol=1e-12, atol=1e-14)
    assert torch.equal(tiny_network(preprocessing="none").preprocess(content), content)


def test_caffe_weights_see_bgr_from_0_to_255(tmp_path, content, monkeypatch):
    """`caffe` turns RGB to BGR; `auto` chooses it for a file whose SHA-256 is listed."""
    state = state_of(tiny_network().float())
    path = tmp_path / "caffe.safetensors"
    weights.write(path, state)
    mean = torch.tensor([103.939, 116.779, 123.68], dtype=torch.float64).view(1, 3, 1, 1)
    kernel, bias = (state[f"features.0.{kind}"].double() for kind in ("weight", "bias"))
    expected = torch.relu(conv2d(255 * content.flip(1) - mean, kernel, bias, padding=1))

    def seen(preprocessing):
        config = FeaturesConfig("bundled", str(path), "max", "zeros", preprocessing)
        return build_features(config).double()(content, ["relu1_1"])["relu1_1"]

    torch.testing.assert_close(seen("caffe"), expected, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(seen("auto"), expected)
    monkeypatch.setattr(build, "CAFFE_FILES", (sha256(path)[:8],))
    torch.testing.assert_close(seen("auto"), expected, rtol=1e-9, atol=1e-9)


def test_a_file_that_gives_odd_features_names_the_key(tmp_path, caplog):
    """A network without biases is scaled: its mean is 0.23 times each factor."""
    state = state_of(tiny_network(VGG19).float(), VGG19)
    path, kernel = tmp_path / "weights.safetensors", state["features.0.weight"].clone()
    for factor, is_odd in ((0.01, True), (4, False), (100, True), (4000, False), (1e5, True)):
        state["features.0.weight"] = factor * kernel
        weights.write(path, state)
        for preprocessing in ("auto", "imagenet"):
            caplog.clear()
            build_features(FeaturesConfig(weights=str(path), preprocessing=preprocessing))
            named = [f"{path} gives" in said and KEY in said for said in caplog.messages]
            assert named == [True] * (is_odd and preprocessing == "auto")


def test_a_network_is_frozen_and_ends_at_the_deepest_tap(network):
    assert not network.train().training
    assert not any(parameter.requires_grad for parameter in network.parameters())
    ended = network.ended_at(["relu1_1", "relu2_1"])
    assert list(ended.layers)[-1] == "relu2_1"
    assert ended.layers["conv2_1"] is network.layers["conv2_1"]
    message = r"unknown layer relu9_9; this network has conv1_1, relu1_1"
    check_error(message, network, picture(), ["relu1_1", "relu9_9"])
    check_error("no layer was asked for", network.ended_at, [])


def test_pooling_and_padding(content):
    """With replicate padding, a constant image gives constant activations up to the border."""
    for kind, pool in (("max", nn.MaxPool2d(2)), ("average", nn.AvgPool2d(2))):
        layers = tiny_network(pooling=kind)(content, ["relu1_2", "pool1"])
        assert torch.equal(layers["pool1"], pool(layers["relu1_2"]))
    flat = torch.full((1, 3, 8, 8), 0.3, dtype=torch.float64)
    for padding, least, most in (("replicate", 0, 1e-12), ("zeros", 1e-2, 1e9)):
        network = tiny_network(padding=padding)
        assert least <= network(flat, ["conv1_1"])["conv1_1"].std(dim=(2, 3)).max() < most
        convs = [layer for layer in network.layers.values() if isinstance(layer, nn.Conv2d)]
        assert [conv.padding_mode for conv in convs] == [padding, "zeros", "zeros", "zeros"]


# The network that the project contains.
@pytest.fixture(scope="module")
def bundled():
    return build_features(FeaturesConfig())


def test_taps_have_vgg19s_strides_and_tell_pictures_apart(bundled):
    """A network with dead layers would map everything to the same activations."""
    pictures = [images.read(path).rgb for path in sorted(ROOT.glob("assets/style/*.jpg"))]
    crops = torch.cat([images.resize(picture, (37, 64)) for picture in pictures])
    features = bundled(crops, LOSS_LAYERS)
    for layer, channels in zip(LOSS_LAYERS, (64, 128, 256, 512, 192, 512), strict=True):
        feature, stride = features[layer], bundled.stride(layer)
        assert feature.shape == (len(crops), channels, 37 // stride, 64 // stride)
        spread = (feature - feature.mean(0)).square().mean() / feature.square().mean()
        assert spread > 0.1


def test_it_is_what_its_card_says(bundled):
    """Its style layers are as wide as VGG-19's; its content loss counts 1.25, as measured."""
    widths = vgg.widths_of(weights.read(weights.BUNDLED), "the bundled network")
    assert [block[0] for block in widths] == [block[0] for block in vgg.WIDTHS["vgg19"]]
    assert bundled.content_gains == {"relu4_2": 1.25}
    assert weights.BUNDLED.stat().st_size <= 8_000_000


def test_a_flipped_bit_is_noticed(tmp_path, monkeypatch):
    content = bytearray(weights.BUNDLED.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "bundled.safetensors"
    damaged.write_bytes(content)
    monkeypatch.setattr(weights, "BUNDLED", damaged)
    check_error(r"bundled\.safetensors is damaged: .* hash", build_features, FeaturesConfig())


def test_the_default_job_lowers_its_loss(tmp_path):
    """The loss falls to less than half, much more than rounding could cause."""
    outcome = paint(TrainConfig(size=64, steps=12, device="cpu"), tmp_path)
    assert outcome.outcome.losses["total"] < metrics_of(tmp_path)[0]["total"] / 2
    assert images.read(outcome.picture).size == (43, 64)
