"""Free memory, freed memory that the process keeps, and out-of-memory errors."""

from types import SimpleNamespace

import psutil
import pytest
import torch

from styletransfer.system.devices import available_memory, free_bytes, is_out_of_memory

CPU = torch.device("cpu")


def files(root, contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def machine(monkeypatch):
    """Pretend that the machine has 9000 bytes of free memory."""
    here = SimpleNamespace(available=9000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: here)


def test_what_the_machine_has_left_is_a_bound(machine, monkeypatch, tmp_path):
    assert available_memory(tmp_path) == 9000
    assert free_bytes(CPU) == 9000
    monkeypatch.setenv("RANK", "0")
    for name, value in (("WORLD_SIZE", "3"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "3")):
        monkeypatch.setenv(name, value)
    assert free_bytes(CPU) == 3000


def test_control_groups(machine, tmp_path):
    told = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/memory.max": "1000\n",
        "sys/fs/cgroup/outer/memory.current": "700\n",
        "sys/fs/cgroup/outer/memory.stat": "anon 500\ninactive_file 200\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/memory.current": "600\n",
    }
    root = files(tmp_path, told)
    # The outer group's limit applies; its inactive page cache counts as free.
    assert available_memory(root) == 1000 - 700 + 200


def test_what_a_shortage_is():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    for error in (caught.value, MemoryError(), torch.OutOfMemoryError("CUDA out of memory.")):
        assert is_out_of_memory(error)
    for other in (RuntimeError("shapes do not match"), ValueError("out of memory")):
        assert not is_out_of_memory(other)
