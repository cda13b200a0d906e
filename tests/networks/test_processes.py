"""A process of a torchrun job: its rank, device, share of the work, and errors."""

import math

import torch
from helpers import call, check_error

from styletransfer.networks.training.processes import Processes, joined
from styletransfer.system.devices import choose_device
from styletransfer.system.rank import VARIABLES, ProcessRank, process_rank
from styletransfer.system.signals import stop_on_signals


def put(monkeypatch, *values):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in zip(VARIABLES, values, strict=False):
        monkeypatch.setenv(name, str(value))


def test_without_torchrun_a_process_is_alone(monkeypatch):
    put(monkeypatch)
    monkeypatch.setenv("WORLD_SIZE", "8")  # some schedulers set this variable
    assert process_rank() == ProcessRank(0, 1, 0, 1)
    with joined(torch.device("cpu")) as job, stop_on_signals() as stop:
        tensor = torch.tensor([1.0, 2.0])
        job.all_reduce([tensor])
        assert tensor.tolist() == [1.0, 2.0]
        assert job.broadcast(lambda: "made") == "made"
        assert job.stopped(stop) is None
        assert job.shard(5) == slice(0, 5)


def test_torchrun_tells_a_process_its_place(monkeypatch):
    put(monkeypatch, 5, 8, 1, 4)
    assert process_rank() == ProcessRank(rank=5, world_size=8, local_rank=1, local_world_size=4)
    for told in ((0, 2), ("one", 2, 0, 1), (2, 2, 0, 1), (0, 2, 2, 2), (0, 1, 0, 2)):
        put(monkeypatch, *told)
        check_error("start with torchrun, or unset them", process_rank)


def test_each_process_of_a_machine_takes_its_own_device(monkeypatch):
    found = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: found)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    put(monkeypatch)
    assert choose_device("auto") == torch.device("cuda")
    check_error("device=cuda:2 is not here: 2 CUDA devices were found", choose_device, "cuda:2")
    put(monkeypatch, 3, 4, 1, 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:1")
    assert choose_device("cpu") == torch.device("cpu")
    check_error("one device for 2 processes; choose device=cuda", choose_device, "cuda:1")
    put(monkeypatch, 3, 4, 2, 3)
    check_error("3 processes on this machine, and 2 CUDA devices", choose_device, "auto")
    for name in ("gpu", "meta", "cuda:x"):
        check_error(r"unknown device .*; choose auto, cpu, cuda, cuda:N", choose_device, name)


def test_shares_are_all_of_it_and_as_even_as_can_be():
    for total, count in ((4, 2), (7, 3), (2, 5), (0, 2)):
        shares = [[*range(total)][Processes(rank, count).shard(total)] for rank in range(count)]
        assert [number for share in shares for number in share] == [*range(total)]
        assert {len(share) for share in shares} <= {total // count, math.ceil(total / count)}


def test_each_process_prints_its_own_error(monkeypatch, capsys):
    alone = "error: mix works in one process; start it without torchrun\n"
    for rank in (0, 1):
        put(monkeypatch, rank, 2, rank, 2)
        assert call(capsys, "mix") == (1, ("", alone))
