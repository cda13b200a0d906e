"""Weights files: valid and invalid files; code in a file is never executed."""

import http.client
import io
import os
import urllib.error
import urllib.request
import zipfile
from unittest.mock import Mock

import pytest
import torch
from helpers import check_error, state_of, tiny_network
from safetensors.torch import save_file

from styletransfer.errors import UserError
from styletransfer.features import build_features, optimize_for_inference, vgg, weights
from styletransfer.settings import FeaturesConfig

TINY = ((4, 4), (6, 6))


def built(**settings):
    return build_features(FeaturesConfig(name="vgg19", **settings))


def saved(path, state):
    """Write a weights file without a hash, as other programs do; return its path."""
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return path


@pytest.mark.usefixtures("tiny_vgg")
@pytest.mark.parametrize("extension", ["safetensors", "pth", "pt"])
def test_weights_survive_a_file(tmp_path, extension):
    network = built(weights="random")
    # A complete torchvision model also has a classifier, which is ignored.
    state = {**state_of(network, vgg.WIDTHS["vgg19"]), "classifier.0.weight": torch.zeros(2, 2)}
    loaded = built(weights=str(saved(tmp_path / f"weights.{extension}", state)))
    for ours, theirs in zip(loaded.parameters(), network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_weights_of_another_network_are_named(network):
    first = ("0.weight", "0.bias", "2.weight", "2.bias")
    shapes = r"features\.0\.weight is \(5, 3, 3, 3\), not \(4, 3, 3, 3\)$"
    several = r"missing features\.0\.weight, features\.0\.bias, features\.2\.weight and more$"
    for changes, message in (
        ({"2.bias": None}, r"another network: missing features\.2\.bias$"),
        ({"99.weight": torch.zeros(1)}, r"network: unexpected features\.99\.weight$"),
        ({"0.weight": torch.zeros(5, 3, 3, 3)}, rf"misshapen: {shapes}"),
        (dict.fromkeys(first), several),
        ({"0.bias": torch.full((4,), torch.nan)}, r"not finite in features\.0\.bias; get it ag"),
        (
            {"0.bias": torch.ones(4, dtype=torch.int8)},
            r"holds torch\.int8 in .*; save it as floats",
        ),
        ({"2.weight": torch.zeros(4, 4, 3, 3)}, r"nothing but zeros in features\.2\.weight"),
    ):
        state = state_of(network) | {f"features.{key}": value for key, value in changes.items()}
        state = {key: value for key, value in state.items() if value is not None}
        check_error(message, vgg.load, vgg.build(TINY), state, TINY, "file.pth")


def test_widths_are_read_off_the_tensors(network):
    assert vgg.widths_of(state_of(network), "x") == [[4, 4], [6, 6]]
    check_error("not a VGG-19-shaped network", vgg.widths_of, {"a": torch.zeros(1)}, "x")
    with pytest.raises(UserError, match=r"holds no kernels in features\.0\.weight"):
        vgg.widths_of({"features.0.weight": torch.tensor(1.0)}, "x")


def test_a_file_may_say_how_much_its_content_counts(network):
    state, loaded = state_of(network), vgg.build(TINY)
    vgg.load(loaded, state | {"content_gain.relu2_1": torch.tensor(1.25)}, TINY, "file.pth")
    ready = optimize_for_inference(loaded, torch.device("cpu"), torch.float32)
    for made in (loaded, loaded.ended_at(["relu2_1"]), ready):
        assert made.content_gains == {"relu2_1": 1.25}
    vgg.load(loaded, state, TINY, "file.pth")
    assert loaded.content_gains == {}
    for gain in (torch.tensor(-1.0), torch.tensor(torch.nan), torch.ones(2)):
        wrong = state | {"content_gain.relu2_1": gain}
        message = r"file\.pth holds a content_gain\.relu2_1 that is no positive number"
        check_error(message, vgg.load, loaded, wrong, TINY, "file.pth")


def test_pickled_code_is_not_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    torch.save({"features.0.weight": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(UserError, match=r"trap\.pth holds more than plain tensors") as caught:
        weights.read(tmp_path / "trap.pth")
    assert not (tmp_path / "sprung").exists()
    assert "weights_only" not in str(caught.value)  # no advice to execute the file


def test_broken_weights_files(tmp_path, network):
    unreadable = "not a readable weights file"
    plain, tensors = saved(tmp_path / "plain.pth", {"a": torch.zeros(100_000)}), state_of(network)
    assert weights.read(plain)
    with (
        zipfile.ZipFile(plain) as archive,
        zipfile.ZipFile(tmp_path / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in archive.namelist():
            bomb.writestr(name, archive.read(name))
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    weights.write(ours, tensors)
    assert weights.read(ours).keys() == tensors.keys()
    flipped = bytearray(ours.read_bytes())
    flipped[-5] ^= 4  # without the hash, this change would load without an error
    saved(theirs, tensors)
    for name, content, message in (
        ("text.pth", b"hello world " * 100, unreadable),
        ("text.safetensors", b"hello world " * 100, unreadable),
        ("empty.pth", b"", unreadable),
        ("empty.safetensors", b"", unreadable),
        ("cut.pth", plain.read_bytes()[:-500], unreadable),
        ("cut.safetensors", theirs.read_bytes()[:-500], unreadable),
        ("weights.bin", b"abc", r"must end in \.safetensors, \.pth or \.pt"),
        ("missing.pth", None, r"no weights file at .*missing\.pth; check features\.weights"),
        ("bomb.pth", None, r"bomb\.pth is compressed"),  # zeros, a thousand times compressed
        ("ours.safetensors", flipped, r"ours\.safetensors is damaged: .* hash"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        check_error(message, weights.read, tmp_path / name)
    for held, message in (
        ([torch.zeros(1)], "does not hold a plain mapping of names to tensors"),
        ({"odd": torch.eye(3).to_sparse()}, "holds odd in another form than plain numbers"),
    ):
        check_error(message, weights.read, saved(tmp_path / "weights.pth", held))


def test_int8_kernels_are_multiplied_by_their_scales(tmp_path):
    state, key = state_of(tiny_network()), "features.2.weight"
    path, kernel = tmp_path / "network.safetensors", state[key].mul(100).to(torch.int8)
    scale = torch.linspace(0, 1, len(kernel))
    weights.write(path, state | {key: kernel, f"{key}_scale": scale})
    read = weights.read(path)
    assert read.keys() == state.keys()
    assert torch.equal(read[key], kernel * scale[:, None, None, None])
    assert all(torch.equal(read[name], state[name]) for name in state if name != key)
    weights.write(path, {**state, key: kernel, f"{key}_scale": torch.ones(3)})
    check_error(r"unexpected features\.2\.weight_scale", built, weights=str(path))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_vgg")
def test_a_download_that_fails_names_the_other_choices(tmp_path, monkeypatch):
    """torchvision's hash is checked: in the last case the server sends a wrong file."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    choices = ("features=bundled", "features.weights=PATH", "features.weights=random")
    for error in (urllib.error.URLError("no route to host"), http.client.IncompleteRead(b"")):
        unreachable = Mock(side_effect=error)
        monkeypatch.setattr(urllib.request, "urlopen", unreachable)
        monkeypatch.setattr("torch.hub.urlopen", unreachable)
        with pytest.raises(UserError, match=r"^[^\n]*cannot be downloaded[^\n]*$") as caught:
            built()
        assert [choice for choice in choices if choice not in str(caught.value)] == []
    junk = io.BytesIO(b"junk")
    junk.info = http.client.HTTPMessage
    monkeypatch.setattr("torch.hub.urlopen", lambda *args, **kwargs: junk)
    check_error("invalid hash value", built)
    assert not list(tmp_path.rglob("*.pth"))
