"""Large tensors in files: equal, and gone with their last use."""

import os

import pytest
import torch

from styletransfer.system import memory


def test_large_tensors_are_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    small = torch.rand(3)
    assert memory.offloaded(small) is small
    monkeypatch.setattr(memory, "SHARE", 0.0)
    for dtype in (torch.float32, torch.bfloat16):
        tensor = torch.rand(1, 3, 50, 70).to(dtype)
        mapped = memory.offloaded(tensor)
        assert torch.equal(mapped, tensor)
        assert mapped.data_ptr() != tensor.data_ptr()
        mapped.mul_(2)
        assert torch.equal(mapped, tensor * 2)


def test_a_disk_that_is_full(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "SHARE", 0.0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    tensor = torch.rand(3)
    assert memory.offloaded(tensor) is tensor
    assert "(No space left on device): kept in memory" in caplog.text
