"""What is said about a device before anything runs on it."""

import torch

from styletransfer.system.devices import set_float32_precision


def test_float32_is_stated():
    convolutions, products = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = convolutions.fp32_precision, products.fp32_precision
    try:
        convolutions.fp32_precision, products.fp32_precision = "ieee", "tf32"
        set_float32_precision()
        assert (convolutions.fp32_precision, products.fp32_precision) == ("tf32", "ieee")
    finally:
        convolutions.fp32_precision, products.fp32_precision = before
