"""Feature networks: names, layout, preprocessing, weights files."""

import http.client
import io
import os
import urllib.error
import urllib.request
import zipfile

import pytest
import torch
import torchvision
from helpers import picture, tiny_network
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import conv2d

from styletransfer.config import FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.features import build_features, optimize_for_inference, vgg, weights
from styletransfer.features.inference import WinogradConv2d
from styletransfer.system.files import sha256

TINY = ((4, 4), (6, 6))


def state_of(network, widths=TINY):
    """The network's tensors under torchvision's names."""
    return {
        f"{key}.{kind}": getattr(network.layers[name], kind).detach().clone()
        for name, key in vgg.state_keys(widths).items()
        for kind in ("weight", "bias")
    }


def built(**settings):
    return build_features(FeaturesConfig(name="vgg19", **settings))


# Layout.


def test_layers_have_the_fields_names(network):
    names = "conv1_1 relu1_1 conv1_2 relu1_2 pool1 conv2_1 relu2_1 conv2_2 relu2_2"
    assert list(network.layers) == names.split()


@pytest.mark.parametrize(("name", "convolutions"), [("vgg16", 13), ("vgg19", 16)])
def test_keys_are_torchvisions(name, convolutions):
    """Against torchvision's own model, built without weights."""
    with torch.device("meta"):
        model = torchvision.models.get_model(name)
    expected = {key: tensor.shape for key, tensor in model.state_dict().items()}
    widths = vgg.WIDTHS[name]
    keys = vgg.state_keys(widths)
    assert len(keys) == convolutions
    channels = [count for block in widths for count in block]
    for (conv, key), count in zip(keys.items(), channels, strict=True):
        assert expected[f"{key}.weight"][0] == count, conv
    assert {f"{key}.weight" for key in keys.values()} == {
        key for key in expected if key.startswith("features.") and key.endswith(".weight")
    }


def test_activations_are_those_of_plain_convolutions(network, content):
    layers = network.layers
    x = (content - network.preprocess.mean) / network.preprocess.std
    x = torch.relu(conv2d(x, layers["conv1_1"].weight, layers["conv1_1"].bias, padding=1))
    assert torch.allclose(network(content, ["relu1_1"])["relu1_1"], x, rtol=1e-12)


def test_network_is_frozen_and_stays_in_eval_mode(network):
    assert not network.train().training
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_network_ends_at_the_deepest_tap(network):
    ended = network.ended_at(["relu1_1", "relu2_1"])
    assert list(ended.layers)[-1] == "relu2_1"
    assert ended.layers["conv2_1"] is network.layers["conv2_1"]


CPU = torch.device("cpu")
WIDE = ((8, 128), (192, 64))


def wide():
    network = vgg.build(WIDE, padding="replicate")
    vgg.randomize(network, seed=0)
    return network


def shorter_ways(network):
    return [name for name, layer in network.layers.items() if isinstance(layer, WinogradConv2d)]


def test_wide_convolutions_take_the_shorter_way_in_float32_alone():
    assert shorter_ways(optimize_for_inference(wide(), CPU, torch.float32)) == ["conv2_1"]
    assert shorter_ways(optimize_for_inference(wide(), CPU, torch.bfloat16)) == []
    assert shorter_ways(optimize_for_inference(wide(), CPU, torch.float64)) == []


@pytest.mark.parametrize("size", [(20, 20), (50, 61)])
def test_a_network_optimized_for_inference_computes_the_same(size):
    image = picture(*size).float()
    expected = wide()(image, ["relu2_2"])["relu2_2"]
    network = optimize_for_inference(wide(), CPU, torch.float32)
    found = network(image, ["relu2_2"])["relu2_2"]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_small_inputs_are_convolved_directly():
    layer = optimize_for_inference(wide(), CPU, torch.float32).layers["conv2_1"]
    small, large = (torch.randn(1, 128, side, side, requires_grad=True) for side in (23, 24))
    assert layer(small).grad_fn.name() == "ConvolutionBackward0"
    assert layer(large).grad_fn.name() == "WinogradConvBackward"


@pytest.mark.parametrize(("layer", "stride"), [("relu1_2", 1), ("pool1", 2), ("relu2_2", 2)])
def test_stride_is_the_shrinkage(network, layer, stride):
    assert network.stride(layer) == stride
    assert network(picture(height=16, width=20), [layer])[layer].shape[2:] == (
        16 // stride,
        20 // stride,
    )


def test_unknown_layer_is_named_beside_those_there_are(network, content):
    with pytest.raises(
        UserError, match=r"unknown layer relu9_9; this network has conv1_1, relu1_1"
    ):
        network(content, ["relu1_1", "relu9_9"])
    with pytest.raises(UserError, match="no layer was asked for"):
        network.ended_at([])


# Options.


def test_pooling():
    x = picture()
    for kind, pool in (("max", nn.MaxPool2d(2)), ("average", nn.AvgPool2d(2))):
        network = tiny_network(pooling=kind)
        layers = network(x, ["relu1_2", "pool1"])
        assert torch.equal(layers["pool1"], pool(layers["relu1_2"]))


def test_replicate_padding_sees_no_frame():
    """A flat picture gives flat activations up to the border."""
    flat = torch.full((1, 3, 8, 8), 0.3, dtype=torch.float64)

    def spread(padding):
        return tiny_network(padding=padding)(flat, ["conv1_1"])["conv1_1"].std(dim=(2, 3)).max()

    assert spread("replicate") < 1e-12
    assert spread("zeros") > 1e-2


def test_padding_differs_in_the_first_convolution_only():
    modes = [
        layer.padding_mode
        for layer in tiny_network(padding="replicate").layers.values()
        if isinstance(layer, nn.Conv2d)
    ]
    assert modes == ["replicate", "zeros", "zeros", "zeros"]


def test_preprocessing():
    mean = torch.tensor(vgg.IMAGENET_MEAN, dtype=torch.float64).view(1, 3, 1, 1)
    std = torch.tensor(vgg.IMAGENET_STD, dtype=torch.float64).view(1, 3, 1, 1)
    x = picture()
    assert torch.allclose(tiny_network().preprocess(x), (x - mean) / std, atol=1e-6)
    assert torch.equal(tiny_network(preprocessing="none").preprocess(x), x)


def test_preprocessing_rounds_once():
    """A bfloat16 network subtracts the mean in the picture's own precision."""
    x = picture().float()
    network = tiny_network()
    exact = network.float().preprocess(x)
    assert torch.equal(
        network.bfloat16().preprocess(x),
        ((x - network.preprocess.mean.float()) / network.preprocess.std.float()).bfloat16(),
    )
    assert (network.preprocess(x).float() - exact).abs().max() < 0.03


@pytest.mark.usefixtures("tiny_vgg")
def test_random_weights_follow_the_seed():
    config = FeaturesConfig(name="vgg19", weights="random")
    one, again, other = (
        build_features(config, seed).layers["conv3_1"].weight for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "resnet"}, "unknown features 'resnet'; choose bundled, vgg19 or vgg16"),
        ({"pooling": "median"}, "unknown features.pooling 'median'; choose max or average"),
        ({"padding": "reflect"}, "unknown features.padding 'reflect'"),
        ({"preprocessing": "caffe"}, "unknown features.preprocessing 'caffe'"),
    ],
)
def test_unknown_choices_are_named(settings, message):
    with pytest.raises(UserError, match=message):
        build_features(FeaturesConfig(**settings))


# Weights files.


@pytest.mark.parametrize("extension", ["safetensors", "pth", "pt"])
def test_weights_survive_a_file(tmp_path, network, content, extension):
    path = tmp_path / f"weights.{extension}"
    state = state_of(network)
    save_file(state, path) if extension == "safetensors" else torch.save(state, path)
    copy = vgg.build(TINY).double()
    vgg.load(copy, weights.read(path), TINY, str(path))
    assert torch.equal(
        copy(content, ["relu2_2"])["relu2_2"], network(content, ["relu2_2"])["relu2_2"]
    )


@pytest.mark.usefixtures("tiny_vgg")
def test_a_path_as_weights(tmp_path):
    network = built(weights="random")
    path = tmp_path / "weights.safetensors"
    state = state_of(network, vgg.WIDTHS["vgg19"])
    # A whole torchvision model holds a classifier too; it is left aside.
    save_file({**state, "classifier.0.weight": torch.zeros(2, 2)}, path)
    loaded = built(weights=str(path))
    assert all(
        torch.equal(a, b) for a, b in zip(network.parameters(), loaded.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("features.2.bias"), r"another network: missing features\.2\.bias$"),
        (
            lambda s: s.update({"features.99.weight": torch.zeros(1)}),
            r"another network: unexpected features\.99\.weight$",
        ),
        (
            lambda s: s.update({"features.0.weight": torch.zeros(5, 3, 3, 3)}),
            r"misshapen: features\.0\.weight is \(5, 3, 3, 3\), not \(4, 3, 3, 3\)$",
        ),
        (
            lambda s: [s.pop(key) for key in list(s)[:5]],
            r"missing features\.0\.weight, features\.0\.bias, features\.2\.weight and more$",
        ),
        (
            lambda s: s["features.0.bias"].fill_(float("nan")),
            r"not finite in features\.0\.bias; get it again",
        ),
    ],
)
def test_weights_of_another_network_are_named(network, change, message):
    state = state_of(network)
    change(state)
    with pytest.raises(UserError, match=message):
        vgg.load(vgg.build(TINY), state, TINY, "file.pth")


def test_a_file_may_say_how_much_its_content_counts(network):
    state = state_of(network) | {"content_gain.relu2_1": torch.tensor(1.25)}
    loaded = vgg.build(TINY)
    vgg.load(loaded, state, TINY, "file.pth")
    assert loaded.content_gains == {"relu2_1": 1.25}
    assert loaded.ended_at(["relu2_1"]).content_gains == {"relu2_1": 1.25}
    ready = optimize_for_inference(loaded, torch.device("cpu"), torch.float32)
    assert ready.content_gains == {"relu2_1": 1.25}
    vgg.load(loaded, state_of(network), TINY, "file.pth")
    assert loaded.content_gains == {}


@pytest.mark.parametrize(
    ("layer", "gain"),
    [
        ("relu2_1", torch.tensor(0.0)),
        ("relu2_1", torch.tensor(-1.0)),
        ("relu2_1", torch.tensor(torch.nan)),
        ("relu2_1", torch.tensor(torch.inf)),
        ("relu2_1", torch.ones(1)),
        ("relu9_1", torch.tensor(1.25)),
    ],
)
def test_a_content_gain_that_is_none(network, layer, gain):
    state = state_of(network) | {f"content_gain.{layer}": gain}
    message = rf"file\.pth holds a content_gain\.{layer} that is no positive number for a layer"
    with pytest.raises(UserError, match=message):
        vgg.load(vgg.build(TINY), state, TINY, "file.pth")


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickled_code_is_not_executed(tmp_path):
    torch.save({"features.0.weight": Trap(tmp_path / "sprung")}, tmp_path / "trap.pth")
    with pytest.raises(UserError, match=r"trap\.pth holds more than plain tensors") as caught:
        weights.read(tmp_path / "trap.pth")
    assert not (tmp_path / "sprung").exists()
    assert "weights_only" not in str(caught.value)  # no advice to execute it after all


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.pth", b"hello world " * 100, "not a readable weights file"),
        ("text.safetensors", b"hello world " * 100, "not a readable weights file"),
        ("empty.pth", b"", "not a readable weights file"),
        ("empty.safetensors", b"", "not a readable weights file"),
        ("weights.bin", b"abc", r"must end in \.safetensors, \.pth or \.pt"),
        ("missing.pth", None, r"no weights file at .*missing\.pth; check features\.weights"),
    ],
)
def test_broken_weights_files(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        weights.read(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("extension", ["safetensors", "pth"])
def test_truncated_weights_file(tmp_path, extension):
    path = tmp_path / f"weights.{extension}"
    state = {"a": torch.zeros(1000)}
    save_file(state, path) if extension == "safetensors" else torch.save(state, path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(UserError, match="not a readable weights file"):
        weights.read(path)


def test_int8_kernels_come_back_within_half_a_step(tmp_path):
    network = tiny_network()
    state = state_of(network)
    state["features.2.weight"][1] = 0  # a channel that no scale can enlarge
    path = tmp_path / "network.safetensors"
    weights.write(path, weights.packed(state, ["features.2.weight"]))
    read = weights.read(path)
    assert read.keys() == state.keys()
    for key, tensor in state.items():
        step = tensor.flatten(1).abs().amax(1) / 127 if key == "features.2.weight" else None
        if step is None:
            assert torch.equal(read[key], tensor)
        else:
            assert ((read[key] - tensor).flatten(1).abs().amax(1) <= 0.5001 * step).all()


def test_a_scale_that_fits_no_kernel_is_named(tmp_path):
    state = weights.packed(state_of(tiny_network()), ["features.2.weight"])
    state["features.2.weight_scale"] = torch.ones(3)
    path = tmp_path / "network.safetensors"
    weights.write(path, state)
    with pytest.raises(UserError, match=r"unexpected features\.2\.weight_scale"):
        built(weights=str(path))


def test_what_we_write_has_a_hash_that_is_checked(tmp_path, network):
    """A flipped bit in a tensor would load silently."""
    path = tmp_path / "weights.safetensors"
    weights.write(path, state_of(network))
    assert weights.read(path).keys() == state_of(network).keys()
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)
    assert load_file(path)
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged: .* hash"):
        weights.read(path)


def test_a_compressed_archive_is_not_unpacked(tmp_path):
    """Zeros take a thousandth of their memory there."""
    torch.save({"a": torch.zeros(100_000)}, tmp_path / "plain.pth")
    assert weights.read(tmp_path / "plain.pth")
    with (
        zipfile.ZipFile(tmp_path / "plain.pth") as plain,
        zipfile.ZipFile(tmp_path / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in plain.namelist():
            bomb.writestr(name, plain.read(name))
    with pytest.raises(UserError, match=r"bomb\.pth is compressed"):
        weights.read(tmp_path / "bomb.pth")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3, device="meta"),
        torch.eye(3).to_sparse(),
        torch.zeros(3, dtype=torch.complex64),
        torch.zeros(1).expand(10**9),
    ],
    ids=["meta", "sparse", "complex", "expanded"],
)
def test_tensors_that_are_no_plain_numbers(tmp_path, tensor):
    torch.save({"odd": tensor}, tmp_path / "weights.pth")
    with pytest.raises(UserError, match="holds odd in another form than plain numbers"):
        weights.read(tmp_path / "weights.pth")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor(1.0), r"holds no kernels in features\.0\.weight"),
        (torch.zeros(4, 3, 3, 3), r"nothing but zeros in features\.0\.weight"),
    ],
)
def test_weights_that_are_no_network(tmp_path, network, weight, message):
    path = tmp_path / "weights.safetensors"
    save_file({**state_of(network), "features.0.weight": weight}, path)
    with pytest.raises(UserError, match=message):
        build_features(FeaturesConfig(name="bundled", weights=str(path)))


@pytest.mark.parametrize(
    "held", [[torch.zeros(1)], {"a": {"b": torch.zeros(1)}}, {1: torch.ones(1)}]
)
def test_files_of_something_else(tmp_path, held):
    torch.save(held, tmp_path / "weights.pth")
    with pytest.raises(UserError, match="does not hold a plain mapping of names to tensors"):
        weights.read(tmp_path / "weights.pth")


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.URLError("no route to host"),
        TimeoutError("timed out"),
        http.client.IncompleteRead(b""),
        urllib.error.HTTPError("http://x", 503, "unavailable", http.client.HTTPMessage(), None),
    ],
    ids=lambda error: type(error).__name__,
)
def test_unreachable_download_names_the_other_choices(tmp_path, monkeypatch, error):
    def unreachable(*args, **kwargs):
        raise error

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr("torch.hub.urlopen", unreachable)
    with pytest.raises(UserError, match="cannot be downloaded") as caught:
        built()
    message = str(caught.value)
    assert "\n" not in message
    for choice in ("features=bundled", "features.weights=PATH", "features.weights=random"):
        assert choice in message
    assert not list(tmp_path.rglob("*.pth"))


def test_damaged_download_is_refused(tmp_path, monkeypatch):
    """torchvision's hash is checked: here the server sends something else."""

    class Answer(io.BytesIO):
        def info(self):
            return http.client.HTTPMessage()

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("torch.hub.urlopen", lambda *args, **kwargs: Answer(b"junk"))
    with pytest.raises(UserError, match="invalid hash value"):
        built()
    assert not list(tmp_path.rglob("*.pth"))


# The bundled network's file, wherever it comes from.


def test_bundled_file_is_checked_against_its_hash(tmp_path, monkeypatch, network):
    path = tmp_path / "bundled.safetensors"
    save_file({k: v.float() for k, v in state_of(network).items()}, path)
    monkeypatch.setattr(weights, "BUNDLED", path)
    monkeypatch.setattr(weights, "BUNDLED_SHA256", sha256(path))
    bundled = build_features(FeaturesConfig(name="bundled"))
    assert list(bundled.layers)[-1] == "relu2_2"
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(UserError, match="missing or damaged; install the project again"):
        build_features(FeaturesConfig(name="bundled"))


def test_widths_are_read_off_the_tensors(network):
    assert vgg.widths_of(state_of(network), "x") == [[4, 4], [6, 6]]
    with pytest.raises(UserError, match="not a VGG-19-shaped network"):
        vgg.widths_of({"a": torch.zeros(1)}, "x")
