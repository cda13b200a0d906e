"""What is said about a device before anything runs on it."""

import torch

from styletransfer.system.devices import state_float32


def test_float32_is_stated():
    convolutions, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = convolutions.fp32_precision, products.fp32_precision
    try:
        convolutions.fp32_precision, products.fp32_precision = "ieee", "tf32"
        state_float32()
        assert (convolutions.fp32_precision, products.fp32_precision) == ("tf32", "ieee")
    finally:
        convolutions.fp32_precision, products.fp32_precision = before
