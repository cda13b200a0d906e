"""Style networks: layers against one-line formulas, the fast form, and files."""

import json
from pathlib import Path

import pytest
import torch
from helpers import check_error, picture, relative_error
from networks.nets import style_network
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from styletransfer.features import weights
from styletransfer.networks import file
from styletransfer.networks.deploy import deployed
from styletransfer.networks.encoder import color_moments, finished
from styletransfer.networks.file import BASE, FOLDER, network_file, shipped
from styletransfer.networks.johnson import (
    LAYOUTS,
    Architecture,
    ConditionalInstanceNorm,
    NormedConv,
    Segment,
)

SLIM, TINY = Architecture((3, 4, 5), 2), Architecture((2, 3, 4), 1)
BLEND = torch.tensor([[0.3, 0.7]]).double()


def network(layout=SLIM, styles=2):
    return style_network(layout, styles).double()


def test_the_norm_is_torchs_with_blended_scales_and_shifts():
    norm, x = ConditionalInstanceNorm(3, 2).double().requires_grad_(False), picture(0, 6, 5)
    plain = nn.functional.instance_norm(x)
    norm.scale[1], norm.shift[1] = torch.tensor([[2.0, 3, 4], [5, 6, 7]]).double()
    theirs = nn.functional.instance_norm(x, weight=norm.scale[1], bias=norm.shift[1])
    for share in (0.0, 0.25, 1.0):
        styles = torch.tensor([[1 - share, share]]).double()
        assert relative_error(norm(x, styles), torch.lerp(plain, theirs, share)) < 1e-14


def test_layers_enlarge_between_pixels_and_add_inputs():
    conv, x = NormedConv(3, 2, 1, upsample=True).double().requires_grad_(False), picture(0, 4, 5)
    repeated = x.repeat_interleave(2, 2).repeat_interleave(2, 3)  # bilinear is this, blurred
    around = nn.functional.pad(repeated, (1, 1, 1, 1), mode="replicate")
    blur = torch.tensor([0.25, 0.5, 0.25]).double().outer(torch.tensor([0.25, 0.5, 0.25]).double())
    enlarged = nn.functional.conv2d(around, blur.expand(3, 1, 3, 3), groups=3)
    bordered = nn.functional.pad(enlarged, (1, 1, 1, 1), mode="replicate")
    by_hand = nn.functional.conv2d(bordered, conv.conv.weight)
    after, one = nn.functional.instance_norm(by_hand).relu(), torch.ones(1, 1).double()
    assert relative_error(conv(x, one), after) < 1e-13
    convs = [NormedConv(3, 3, 1), NormedConv(3, 3, 1, relu=False)]
    block = Segment(convs, residual=True).double()
    assert torch.equal(block(x, one), x + convs[1](convs[0](x, one), one))


@pytest.mark.parametrize("layout", [SLIM, Architecture((8, 3, 17), 0)])
def test_a_deployed_network_paints_the_same_at_any_size(layout):
    trained = network(layout)
    fast = deployed(trained, torch.float64)
    for size in ((8, 8), (9, 14), (31, 10), (70, 24)):
        image = picture(0, *size)
        painted = trained(image, BLEND)
        assert painted.shape == (1, 3, *size)
        assert 0 < painted.amin() < painted.amax() < 1
        assert (fast(image, BLEND) - painted).abs().max() < 1e-11
        edge = torch.nn.functional.pad(image, (0, -size[1] % 4, 0, -size[0] % 4), "replicate")
        repeated = trained(edge, BLEND)[:, :, : size[0], : size[1]]
        assert torch.equal(painted, repeated)


def test_each_picture_of_a_batch_has_a_style_of_its_own():
    trained = network()
    batch = torch.cat([picture(0, 12, 16), 0.1 * picture(1, 12, 16)])
    styles = torch.eye(2).double()
    painted = trained(batch, styles)
    for style in range(2):
        alone = trained(batch[style : style + 1], styles[style : style + 1])
        assert relative_error(painted[style : style + 1], alone) < 1e-12
    assert relative_error(trained(batch, styles.flip(0)), painted) > 0.01
    assert (deployed(trained, torch.float64)(batch, styles) - painted).abs().max() < 1e-11


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-4), (torch.bfloat16, 0.2)])
def test_in_lower_precision_it_is_close(dtype, error):
    trained, image = network(LAYOUTS["tiny"]), picture(3, 64, 40)
    exact = trained(image, BLEND)
    painted = deployed(trained.float(), dtype)(image.float(), BLEND.float())
    assert painted.dtype == torch.float32
    assert 0 < (painted - exact).abs().max() < error
    assert (painted - exact).abs().mean() < error / 12


@pytest.fixture
def saved(tmp_path):
    file.write(tmp_path / "net.safetensors", style_network(TINY, 2), ["oil", "été"])
    return tmp_path / "net.safetensors"


def changed(path, **told):
    """Write a network file again with changed metadata; return its path."""
    with safe_open(path, framework="pt") as stored:
        told = json.loads(stored.metadata()["styletransfer"]) | told
        values = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    path.unlink()  # tensors that were read may still map the old file
    save_file(values, path, metadata={"styletransfer": json.dumps(told)})
    return path


def test_a_network_that_is_written_again_has_equal_bytes(saved):
    stored = file.read(saved)
    assert (stored.styles, stored.network.layout) == (["oil", "été"], TINY)
    ours, theirs = (each.state_dict() for each in (style_network(TINY, 2), stored.network))
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    other = saved.with_name("again.safetensors")
    file.write(other, stored.network, stored.styles)
    assert other.read_bytes() == saved.read_bytes()
    (plain := saved.with_name("any")).touch()
    assert saved.stat().st_mode == plain.stat().st_mode  # it has the permissions of any new file


def test_what_is_no_network_is_refused(saved, tmp_path):
    whole = saved.read_bytes()
    for metadata, message in (
        ({"format": "another"}, "is no style network; name a file that train_network has written"),
        ({"version": 1}, "of version 1, and this program reads version 2"),
        ({"sha256": "0"}, "is damaged: its tensors"),
        ({"layout": {"widths": [2, 3, 5], "blocks": 1}}, "it holds another network than it says"),
        ({"layout": {"widths": [2, 3, 10**99], "blocks": 1}}, "it holds another network than"),
        ({"layout": {"widths": [2, -3, 4], "blocks": 1}}, "it holds another network than it says"),
        ({"layout": {"widths": [2, 3, 4], "blocks": 2}}, "it holds another network than it says"),
        ({"layout": {"widths": [2, 3, 4], "blocks": 10**9}}, "it holds another network than it"),
        ({"layout": 3}, "it holds another network than it says"),
        ({"styles": ["oil"]}, "it holds another network than it says"),
        ({"styles": "oil"}, "it holds another network than it says"),
    ):
        check_error(message, file.read, changed(saved, **metadata))
        saved.write_bytes(whole)
    saved.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    check_error("is damaged: its tensors", file.read, saved)
    saved.write_bytes(whole)
    weights.write(tmp_path / "features.safetensors", {"features.0.weight": torch.zeros(1)})
    features = (tmp_path / "features.safetensors").read_bytes()
    for content in (whole[: len(whole) // 2], b"hello", b"", features):
        saved.write_bytes(content)
        check_error("is no style network", file.read, saved)
    check_error("no style network at", file.read, tmp_path)


def test_each_bundled_network_is_small_and_has_a_card():
    assert {"any", "oil", BASE} <= set(shipped())
    for name in shipped():
        found = file.read(network_file(name))
        assert found.network.layout in LAYOUTS.values()
        assert network_file(name).stat().st_size <= 3e6
        card = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert f"# {name}" in card
        assert all(style in card for style in found.styles)


def test_a_file_in_the_way_goes_first_and_other_names_are_paths(desk):
    assert network_file("oil") == FOLDER / "oil.safetensors"
    Path("oil").write_text("mine")
    assert network_file("oil") == Path("oil")
    assert network_file("nets/mine.safetensors") == Path("nets/mine.safetensors")
    check_error(r"no style network at ochre.*ships: .*oil", file.read, network_file("ochre"))


def test_a_pastiche_is_moved_to_the_paintings_palette():
    """The change of colours is the smallest that gives the palette, and it is linear."""
    pastiche, painting = (0.3 + 0.4 * picture(seed, 20, 30) for seed in (1, 2))
    whole = finished(pastiche, color_moments(painting))
    assert torch.equal(finished(pastiche, color_moments(painting), strength=2.0), whole)
    # Not exact, because of the least variance.
    assert relative_error(color_moments(whole), color_moments(painting)) < 1e-2
    half = finished(pastiche, color_moments(painting), strength=0.5)
    assert relative_error(half, (pastiche + whole) / 2) < 1e-12
    assert torch.equal(finished(pastiche, color_moments(painting), strength=0.0), pastiche)
    large = torch.rand(1, 3, 1, 1).expand(1, 3, 3000, 40)
    assert relative_error(color_moments(large)[:, 0], large[0, :, 0, 0].double()) < 1e-6
