"""Files of style networks: what was written is read, and nothing else."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from styletransfer.errors import UserError
from styletransfer.features import weights
from styletransfer.networks import Architecture, StyleNetwork, file
from styletransfer.networks.johnson import randomize


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
        held = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    if tensors is not None:
        held |= tensors
        told["sha256"] = weights.digest(held)
    save_file(held, path, metadata={"styletransfer": json.dumps(told)})
    return path


def test_what_was_written_is_read(saved: Path) -> None:
    found = file.read(saved)
    again = StyleNetwork(Architecture((2, 3, 4), 1), 2)
    randomize(again, 0)
    assert found.styles == ["oil", "été"]
    assert found.network.layout == again.layout
    theirs = found.network.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in again.state_dict().items())
    assert not any(parameter.requires_grad for parameter in found.network.parameters())


def layout(widths: object, blocks: object = 1) -> dict[str, object]:
    return {"widths": widths, "blocks": blocks}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "another"}, "is no style network; name a file that train_network has written"),
        ({"version": 2}, "of version 2, and this program reads version 1"),
        ({"sha256": "0"}, "is damaged: its tensors"),
        ({"layout": layout([2, 3, 5])}, "is damaged: its tensors"),
        ({"layout": layout([2, 3, 4], 2)}, "is damaged: its tensors"),
        ({"styles": ["oil"]}, "is damaged: its tensors"),
        ({"layout": None}, "does not say what network"),
        ({"layout": layout([2, 3])}, "does not say what network"),
        ({"layout": layout([0, 3, 4])}, "does not say what network"),
        ({"layout": layout([2, 3, 10**9])}, "does not say what network"),
        ({"layout": layout([2, 3, 4], 10**9)}, "does not say what network"),
        ({"layout": layout([2, 3, 4], [])}, "does not say what network"),
        ({"styles": []}, "does not say what network"),
        ({"styles": [1, 2]}, "does not say what network"),
        ({"styles": "oil"}, "does not say what network"),
    ],
)
def test_what_is_no_network_is_refused(
    saved: Path, metadata: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        file.read(changed(saved, **metadata))
    assert "\n" not in str(caught.value)


def test_equal_networks_are_equal_bytes(saved: Path, tmp_path: Path) -> None:
    found = file.read(saved)
    file.write(tmp_path / "again.safetensors", found.network, found.styles)
    assert (tmp_path / "again.safetensors").read_bytes() == saved.read_bytes()


def test_others_may_read_the_file_as_they_may_any_other(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    assert saved.stat().st_mode == (tmp_path / "any").stat().st_mode


def test_networks_that_are_not_finite_are_refused(saved: Path) -> None:
    name = "segments.0.convs.0.norm.scale"
    with pytest.raises(UserError, match="not finite"):
        file.read(changed(saved, {name: torch.full((2, 2), torch.nan)}))


def test_other_files_are_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.safetensors").write_text("hello")
    (tmp_path / "empty.safetensors").touch()
    weights.write(tmp_path / "features.safetensors", {"features.0.weight": torch.zeros(1)})
    for name in ("half", "text", "empty", "features"):
        with pytest.raises(UserError, match="is no style network"):
            file.read(tmp_path / f"{name}.safetensors")
    with pytest.raises(UserError, match="no style network at"):
        file.read(tmp_path)


def test_one_flipped_bit_is_noticed(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(bytes(data))
    with pytest.raises(UserError, match="is damaged: its tensors"):
        file.read(saved)
