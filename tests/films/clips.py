"""Short clips with known motion: a smooth scene that is panned."""

import torch

PAN = (1.5, -0.5)
"""Motion of the camera of `pan` in pixels per frame, to the right and down."""


def scene(x, y):
    """Return the colours (1, 3, H, W) of an endless smooth scene at positions (H, W) in pixels."""
    waves = [(0.11, 0.05, 0.3), (-0.07, 0.13, 1.1), (0.05, -0.09, 2.0)]
    colors = [
        0.5 + 0.2 * torch.sin(a * x + b * y + c) + 0.2 * torch.cos(b * x) for a, b, c in waves
    ]
    return torch.stack(colors)[None]


def grid(height=24, width=32):
    """Return the x and the y of each pixel of a frame, (H, W) each."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return x.double(), y.double()


def pan(time):
    """Return the frame (1, 3, 24, 32) at `time`, in frames, of a camera that moves by PAN."""
    x, y = grid()
    return scene(x + PAN[0] * time, y + PAN[1] * time)


def pan_flow():
    """Return the flow (1, 2, 24, 32) from a frame of `pan` to the frame before."""
    return torch.tensor(PAN).double().view(1, 2, 1, 1).expand(1, 2, 24, 32)
