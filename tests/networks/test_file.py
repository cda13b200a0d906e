"""Files of style networks: what was written is read, and nothing else; and those that ship."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from styletransfer.errors import UserError
from styletransfer.features import weights
from styletransfer.features.vgg import randomize
from styletransfer.networks import LAYOUTS, Architecture, StyleNetwork, file
from styletransfer.networks.file import BASE, FOLDER, network_file, shipped


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    network = StyleNetwork(Architecture((2, 3, 4), 1), 2)
    randomize(network, 0)
    file.write(tmp_path / "net.safetensors", network, ["oil", "été"])
    return tmp_path / "net.safetensors"


def changed(path: Path, tensors: dict[str, torch.Tensor] | None = None, **told: object) -> Path:
    """Write a file again with other metadata, and other tensors under their right hash."""
    with safe_open(path, framework="pt") as stored:
        told = json.loads(stored.metadata()["styletransfer"]) | told
        values = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    if tensors is not None:
        values |= tensors
        told["sha256"] = weights.digest(values)
    save_file(values, path, metadata={"styletransfer": json.dumps(told)})
    return path


def test_what_was_written_is_read_and_written_again_is_equal_bytes(saved: Path) -> None:
    stored = file.read(saved)
    again = StyleNetwork(Architecture((2, 3, 4), 1), 2)
    randomize(again, 0)
    assert stored.styles == ["oil", "été"]
    assert stored.network.layout == again.layout
    theirs = stored.network.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in again.state_dict().items())
    other = saved.with_name("again.safetensors")
    file.write(other, stored.network, stored.styles)
    assert other.read_bytes() == saved.read_bytes()
    (plain := saved.with_name("any")).touch()
    assert saved.stat().st_mode == plain.stat().st_mode  # others may read it


def layout(widths: object, blocks: object = 1) -> dict[str, object]:
    return {"widths": widths, "blocks": blocks}


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"format": "another"}, "is no style network; name a file that train_network has written"),
    ({"version": 2}, "of version 2, and this program reads version 1"),
    ({"sha256": "0"}, "is damaged: its tensors"),
    ({"layout": layout([2, 3, 5])}, "is damaged: its tensors"),
    ({"styles": ["oil"]}, "is damaged: its tensors"),
    ({"layout": None}, "does not say what network"),
    ({"layout": layout([2, 3])}, "does not say what network"),
    ({"layout": layout([0, 3, 4])}, "does not say what network"),
    ({"layout": layout([2, 3, float("inf")])}, "does not say what network"),
    ({"layout": layout([2, 3, 10**9])}, "does not say what network"),
    ({"layout": layout([2, 3, 4], 10**9)}, "does not say what network"),
    ({"layout": layout([2, 3, 4], [])}, "does not say what network"),
    ({"styles": []}, "does not say what network"),
    ({"styles": [1, 2]}, "does not say what network"),
    ({"styles": "oil"}, "does not say what network"),
]


def test_what_is_no_network_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for metadata, message in REFUSED:
        with pytest.raises(UserError, match=message) as caught:
            file.read(changed(saved, **metadata))
        assert "\n" not in str(caught.value)
        saved.write_bytes(whole)
    saved.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserError, match="is damaged: its tensors"):
        file.read(saved)
    saved.write_bytes(whole)
    with pytest.raises(UserError, match="not finite"):
        file.read(changed(saved, {"segments.0.convs.0.norm.scale": torch.full((2, 2), torch.nan)}))
    weights.write(tmp_path / "features.safetensors", {"features.0.weight": torch.zeros(1)})
    features = (tmp_path / "features.safetensors").read_bytes()
    for content in (whole[: len(whole) // 2], b"hello", b"", features):
        saved.write_bytes(content)
        with pytest.raises(UserError, match="is no style network"):
            file.read(saved)
    with pytest.raises(UserError, match="no style network at"):
        file.read(tmp_path)


def test_float16_is_read_and_other_types_are_refused(saved: Path) -> None:
    whole, theirs = saved.read_bytes(), file.read(saved).network.state_dict()
    half = file.read(changed(saved, {name: value.half() for name, value in theirs.items()}))
    for name, value in half.network.state_dict().items():
        assert torch.equal(value, theirs[name].half().float())
    for kind in (torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        saved.write_bytes(whole)
        name = next(iter(theirs))
        with pytest.raises(UserError, match="it may hold float32 and float16") as caught:
            file.read(changed(saved, {name: theirs[name].to(kind)}))
        assert "\n" not in str(caught.value)


def test_each_that_ships_is_a_network_of_at_most_2_megabytes_with_a_card() -> None:
    assert {"oil", BASE} <= set(shipped())
    for name in shipped():
        found = file.read(network_file(name))
        assert found.network.layout in LAYOUTS.values()
        assert network_file(name).stat().st_size <= 2e6
        card = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert f"# {name}" in card
        assert all(style in card for style in found.styles)


def test_a_file_in_the_way_goes_first_and_other_names_are_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert network_file("oil") == FOLDER / "oil.safetensors"
    Path("oil").write_text("mine")
    assert network_file("oil") == Path("oil")
    assert network_file("nets/mine.safetensors") == Path("nets/mine.safetensors")
    with pytest.raises(UserError, match=r"no style network at ochre.*ships: .*oil"):
        file.read(network_file("ochre"))
