"""Devices and precisions: what is chosen, and what is said before anything runs."""

import platform

import pytest
import torch

from styletransfer.errors import UserError
from styletransfer.system import devices
from styletransfer.system.devices import choose_device, choose_precision, set_float32_precision
from styletransfer.system.measure import describe_machine
from styletransfer.system.process import VARIABLES

CPU = torch.device("cpu")


@pytest.fixture
def processor(monkeypatch):
    """Give the processor some units; return what sets them."""

    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # as CI sets it

    def has(**units):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        devices._tell_emulated.cache_clear()

    yield has
    devices._tell_emulated.cache_clear()


def test_float32_is_stated():
    convolutions, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = convolutions.fp32_precision, products.fp32_precision
    try:
        convolutions.fp32_precision, products.fp32_precision = "ieee", "tf32"
        set_float32_precision()
        assert (convolutions.fp32_precision, products.fp32_precision) == ("tf32", "ieee")
    finally:
        convolutions.fp32_precision, products.fp32_precision = before


def test_units_for_bfloat16(processor, monkeypatch):
    for units, told, auto in (
        ({}, "AVX2", torch.float32),
        ({"avx512_bf16": True, "amx_bf16": False}, "AVX2, AVX512-BF16", torch.bfloat16),
        ({"avx512_bf16": True, "amx_bf16": True}, "AVX2, AVX512-BF16, AMX", torch.bfloat16),
    ):
        processor(**units)
        assert describe_machine(CPU, torch.float32)["instructions"] == told
        assert choose_precision("auto", CPU) == auto
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # which leaves them unused
    assert choose_precision("auto", CPU) == torch.float32


def test_an_emulated_precision_is_told_once_with_its_price(processor, caplog):
    processor(avx512_bf16=True)
    for name in ("auto", "float32", "float64", "bfloat16"):
        choose_precision(name, CPU)
    assert caplog.text == ""
    for units, times in (({"avx2": True}, 10), ({"avx512_f": True}, 3)):
        caplog.clear()
        processor(**units)
        for name in ("auto", "float32", "bfloat16", "bfloat16"):
            choose_precision(name, CPU)
        (record,) = caplog.records
        assert f"is emulated on this processor, about {times} times slower" in record.getMessage()
    with pytest.raises(UserError, match="unknown precision 'half'; choose auto, bfloat16"):
        choose_precision("half", CPU)


def test_each_process_of_a_machine_takes_its_own_device(monkeypatch):
    def put(*values):
        for name, value in zip(VARIABLES, values, strict=True):
            monkeypatch.setenv(name, str(value))

    found = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: found)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert choose_device("auto") == torch.device("cuda")
    with pytest.raises(UserError, match="device=cuda:2 is not here: 2 CUDA devices were found"):
        choose_device("cuda:2")
    put(3, 4, 1, 2)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:1")
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="one device for 2 processes; choose device=cuda"):
        choose_device("cuda:1")
    put(3, 4, 2, 3)
    with pytest.raises(UserError, match="3 processes on this machine, and 2 CUDA devices"):
        choose_device("auto")


def test_devices_that_are_not_here():
    for name in ("gpu", "meta", "cuda:x"):
        with pytest.raises(UserError, match=r"unknown device .*; choose auto, cpu, cuda, cuda:N"):
            choose_device(name)
