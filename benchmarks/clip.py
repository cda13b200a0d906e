"""Make a small film whose motion is known: `python benchmarks/clip.py clip.mp4`.

A camera moves over one bundled photograph and zooms in, while a part of another photograph crosses
the picture; every frame has the grain of a small camera. The script then prints the error of the
optical flow that `film` uses. It needs the extra [video].
"""

import argparse
from fractions import Fraction
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from styletransfer.films.motion import motion_between
from styletransfer.pictures import images
from styletransfer.resources import resource

RATE = 12
# Standard deviation of the grain (noise) in grey levels, of which there are 256.
GRAIN = 1.5
# Motion of the background photograph: its shift per frame in widths and heights of the photograph,
# and its magnification per frame.
PAN, ZOOM = (0.004, 0.0015), 1.006
# The cut-out is a circle with part of another photograph, which crosses the picture. RADIUS is its
# radius, divided by the frame's height. START is the x of its centre in the first frame, and SPEED
# its move per frame, both divided by the frame's width.
RADIUS, START, SPEED = 0.24, 0.12, 0.022


def photograph(name: str) -> Tensor:
    """Return the bundled photograph `name`, (1, 3, H, W)."""
    return images.read(resource("assets") / "content" / f"{name}.jpg").rgb


def positions(height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return x and y (H, W) of the pixel centres, from -1 to 1 across a frame."""
    y, x = torch.meshgrid(
        (2 * torch.arange(height) + 1) / height - 1,
        (2 * torch.arange(width) + 1) / width - 1,
        indexing="ij",
    )
    return x, y


def background(x: Tensor, y: Tensor, time: float) -> tuple[Tensor, Tensor]:
    """Return which positions of the background photograph, from -1 to 1, appear at (x, y)."""
    scale = 0.72 / ZOOM**time
    return x * scale - 0.15 + 2 * PAN[0] * time, y * scale + 2 * PAN[1] * time


def cut_out(x: Tensor, y: Tensor, time: float, aspect: float) -> tuple[Tensor, Tensor]:
    """Return positions (x, y) in coordinates in which the cut-out has centre 0 and radius 1."""
    return (x + 1 - 2 * (START + SPEED * time)) * aspect / (2 * RADIUS), (y - 0.1) / (2 * RADIUS)


def sampled(photo: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return a photograph's colours (1, 3, H, W) at positions (H, W) from -1 to 1."""
    return grid_sample(photo, torch.stack((x, y), -1)[None], "bicubic", "border", False).clamp(0, 1)


def frame(time: int, size: tuple[int, int], back: Tensor, front: Tensor) -> Tensor:
    """Return the frame (1, 3, H, W) number `time`, without grain.

    Each pixel is the mean of 4 x 4 samples, so that edges are as soft as a camera's.
    """
    height, width = size
    x, y = positions(4 * height, 4 * width)
    u, v = cut_out(x, y, time, width / height)
    picture = torch.where(
        u.square() + v.square() < 1,
        sampled(front, 0.42 * u + 0.1, 0.55 * v - 0.1),
        sampled(back, *background(x, y, time)),
    )
    return torch.nn.functional.avg_pool2d(picture, 4)


def flow(time: int, size: tuple[int, int]) -> Tensor:
    """Return the flow (1, 2, H, W) in pixels from frame number `time` to the previous frame."""
    height, width = size
    x, y = positions(height, width)
    u, v = cut_out(x, y, time, width / height)
    centre = background(torch.zeros(()), torch.zeros(()), time - 1)
    scale = 0.72 / ZOOM ** (time - 1)
    before = [(a - b) / scale for a, b in zip(background(x, y, time), centre, strict=True)]
    inside = u.square() + v.square() < 1
    moved = (torch.where(inside, x - 2 * SPEED, before[0]), torch.where(inside, y, before[1]))
    return torch.stack(((moved[0] - x) * width / 2, (moved[1] - y) * height / 2))[None]


def clip(count: int, size: tuple[int, int]) -> list[Tensor]:
    """Return `count` frames (1, 3, H, W) with their grain."""
    back, front = photograph("coffee"), photograph("chelsea")
    generator = torch.Generator().manual_seed(0)
    return [
        (
            frame(time, size, back, front)
            + GRAIN / 255 * torch.randn(3, *size, generator=generator)
        ).clamp(0, 1)
        for time in range(count)
    ]


def write(path: Path, frames: list[Tensor]) -> None:
    """Encode frames (1, 3, H, W) of even sides as H.264 with little loss."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "12"})
        stream.height, stream.width = frames[0].shape[2:]
        stream.pix_fmt, stream.time_base = "yuv420p", Fraction(1, RATE)
        for image in frames:
            samples = (image[0] * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
            container.mux(stream.encode(av.VideoFrame.from_ndarray(samples, "rgb24")))
        container.mux(stream.encode(None))


def main() -> None:
    """Write the film and print the mean error of `motion_between`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--size", type=int, nargs=2, default=(160, 120), help="width and height")
    arguments = parser.parse_args()
    size = (arguments.size[1], arguments.size[0])
    frames = clip(arguments.frames, size)
    write(arguments.output, frames)
    errors, relied = [], []
    for time in range(1, len(frames)):
        found = motion_between(frames[time], frames[time - 1])
        error = (found.flow - flow(time, size)).square().sum(1, keepdim=True).sqrt()
        errors.append(float((error * found.reliability).sum() / found.reliability.sum()))
        relied.append(float(found.reliability.mean()))
    print(arguments.output)
    print(f"motion relied on: {sum(relied) / len(relied):.0%} of the pixels")
    print(f"error of the flow there: {sum(errors) / len(errors):.2f} pixels on average")


if __name__ == "__main__":
    main()
