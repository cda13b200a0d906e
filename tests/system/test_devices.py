"""Precisions: how float32 is computed, and when bfloat16 is chosen."""

import pytest
import torch
from helpers import check_error

from styletransfer.system.devices import (
    choose_precision,
    cpu_bfloat16_units,
    set_cuda_arithmetic,
)

CPU = torch.device("cpu")


@pytest.fixture
def processor(monkeypatch):
    """Return a function that sets the instruction sets which the processor reports."""
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)  # CI sets this variable

    def has(**units):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)

    return has


def test_cuda_makes_the_same_bits_each_time(monkeypatch):
    cudnn = torch.backends.cudnn
    monkeypatch.setattr(cudnn, "deterministic", False)
    monkeypatch.setattr(cudnn, "benchmark", True)
    set_cuda_arithmetic()
    assert (cudnn.deterministic, cudnn.benchmark) == (True, False)


def test_float32_is_stated():
    convolutions, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = convolutions.fp32_precision, products.fp32_precision
    try:
        convolutions.fp32_precision, products.fp32_precision = "ieee", "tf32"
        set_cuda_arithmetic()
        assert (convolutions.fp32_precision, products.fp32_precision) == ("tf32", "ieee")
    finally:
        convolutions.fp32_precision, products.fp32_precision = before


def test_units_for_bfloat16(processor, monkeypatch):
    for units, told, auto in (
        ({}, [], torch.float32),
        ({"avx512_bf16": True, "amx_bf16": True}, ["AVX512-BF16", "AMX"], torch.bfloat16),
    ):
        processor(**units)
        assert cpu_bfloat16_units() == told
        assert choose_precision("auto", CPU) == auto
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # disables the bfloat16 instructions
    assert choose_precision("auto", CPU) == torch.float32
    check_error("device=mps has no float64", choose_precision, "float64", torch.device("mps"))
