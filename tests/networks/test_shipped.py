"""The networks that ship: small, readable, named, and each with its card."""

from pathlib import Path

import pytest

from styletransfer.errors import UserError
from styletransfer.networks import LAYOUTS, file
from styletransfer.networks.shipped import BASE, FOLDER, network_file, shipped


def test_each_is_a_network_of_at_most_2_megabytes_with_a_card() -> None:
    assert {"oil", BASE} <= set(shipped())
    for name in shipped():
        saved = file.read(network_file(name))
        assert saved.network.layout in LAYOUTS.values()
        assert network_file(name).stat().st_size <= 2e6
        card = (FOLDER / f"{name}.md").read_text()
        assert f"# {name}" in card
        assert all(style in card for style in saved.styles)


def test_a_file_in_the_way_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert network_file("oil") == FOLDER / "oil.safetensors"
    Path("oil").write_text("mine")
    assert network_file("oil") == Path("oil")


def test_other_names_are_paths() -> None:
    assert network_file("nets/mine.safetensors") == Path("nets/mine.safetensors")
    with pytest.raises(UserError, match=r"no style network at ochre.*ships: .*oil"):
        file.read(network_file("ochre"))
