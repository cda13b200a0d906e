"""Measure how long a user's commands take on a GPU, as a multiple of the time of a reference.

    python benchmarks/gpu.py [--rounds 3] [WORDS]    # with WORDS, only rows whose name has them

Each row has the median and quartiles of these ratios, and medians of seconds. Work and reference
are timed in turn, after a first round that is not counted. A plain evaluation is one of plain.py
for the same pictures, in float32. With captured=true an evaluation is replayed as a CUDA graph, and
so are the convolutions that are its reference. A run without a GPU only shows that the script
works: pictures are small, see size= in the rows, and nothing is captured. A row that cannot be
measured says why.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from functools import partial
from itertools import count, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image

from benchmarks.evaluations.config import BenchmarkConfig
from benchmarks.evaluations.reference import plain_loop
from benchmarks.looks import convolutions, job_of
from benchmarks.measured import Spread, describe_machine
from styletransfer import stylize
from styletransfer.errors import UserError
from styletransfer.films.copier import FrameCopier
from styletransfer.films.read import Film
from styletransfer.films.write import FilmWriter
from styletransfer.lessons.measure import Work, seconds_by_round
from styletransfer.networks.apply.paint import apply_network
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.objective import gradient_at
from styletransfer.objective.captured import captured_on_cuda
from styletransfer.optimize.run import objective_of
from styletransfer.pictures import images
from styletransfer.settings import ASSETS, FeaturesConfig
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.system.devices import choose_device, choose_precision, hardware

SCRIPT = Path(__file__).parents[1] / "scripts" / "train.py"
CONTENT, STYLE = str(ASSETS / "content" / "coffee.jpg"), str(ASSETS / "style" / "oil.jpg")
VGG19 = ("features=vgg19", "features.weights=random")
# Longer sides in pixels of pictures, of a film's frames and of the photographs in a folder; the
# numbers of frames and photographs. On a CPU sides are divided by SHRINK, and numbers are FEW.
SIZES, FRAME, PHOTO, FRAMES, PHOTOS = (512, 1024, 2048, 4096), 1920, 512, 30, 120
SHRINK, FEW = 16, 3
NUMBERS = count()  # gives a new file's name its number, and a frame in `paired` its move in pixels

Both = tuple[Work, Work]  # a function that does the work, and one that does its reference
# The names of work and reference, the function that makes both, how many pictures the work paints.
Row = tuple[str, str, Callable[[], Both], int]


def rows(device: torch.device) -> Iterator[Row]:
    """Yield all rows."""
    is_cpu = device.type == "cpu"
    shrink, frames, photos = (SHRINK, FEW, FEW) if is_cpu else (1, FRAMES, PHOTOS)
    sizes, ways = [size // shrink for size in SIZES], ["false"] if is_cpu else ["false", "true"]
    for size, way in product(sizes, ways):
        words, captured, plain = f"size={size} captured={way}", way == "true", "a plain evaluation"
        yield f"default picture, {words}", plain, partial(picture, size, captured), 1
        if size in sizes[:2]:
            one, other = (partial(evaluations, size, captured, *more) for more in ((), VGG19))
            yield f"default evaluation, {words}", "its convolutions", one, 1
            yield f"autograd_function, VGG-19, {words}", plain, other, 1
        if size == sizes[0]:
            yield f"scripts/train.py {words}", "import torch", partial(processes, words), 1
    yield f"paired frame, size={sizes[0]}", plain, partial(paired, sizes[0]), 1
    name, side = "Pillow reads and writes them", PHOTO // shrink
    yield f"apply on a folder, size={side}", name, partial(folder, photos, side), photos
    name, side = "the film is read and written", FRAME // shrink
    for steady in (0.0, 0.5):
        work = f"apply on a film, size={side} steady={steady:g}"
        yield work, name, partial(film, frames, side, steady), frames


def plain_evaluation(size: int, *words: str) -> Work:
    """Return a function that makes a plain evaluation; `words` choose the network."""
    job = job_of(["experiment=classic", "precision=float32", *words], size)
    pictures, network = job.full_size(), FeaturesConfig("vgg19" if words else "bundled")
    two = pictures.content, pictures.styles[0]
    loop = plain_loop(BenchmarkConfig(features=network), job.extractor, *two)
    return partial(loop.evaluate, pictures.content)


def picture(size: int, captured: bool) -> Both:
    """Return functions: one paints a picture by `stylize`, one makes a plain evaluation of it."""
    run = partial(stylize, CONTENT, STYLE, size=size, captured=captured)
    return run, plain_evaluation(size)


def evaluations(size: int, captured: bool, *network: str) -> Both:
    """Return functions: one evaluates a look, one is its reference.

    If `network` has words, the look is Gatys' losses, and the reference is a plain evaluation.
    Otherwise it is the default look, and the reference is its network's convolutions.
    """
    job = job_of(
        [f"captured={captured}", *network, *(["experiment=classic"] if network else [])], size
    )
    pictures = job.full_size()
    run = partial(gradient_at, objective_of(job, pictures, None), pictures.content)
    if network:
        return run, plain_evaluation(size, *network)
    alone: Any = convolutions(job)
    if not captured:
        return run, alone
    replay, _ = captured_on_cuda(job.device, alone)
    return run, lambda: (replay(), alone)  # keeps `alone`, whose tensors the replay reads


def processes(words: str) -> Both:
    """Return functions that start Python: one paints a picture there, one only imports torch."""
    start = partial(subprocess.run, check=True, capture_output=True)
    paint = [sys.executable, str(SCRIPT), *words.split()]
    return lambda: start(paint), lambda: start([sys.executable, "-c", "import torch"])


def paired(size: int) -> Both:
    """Return functions: one paints the next frame of a film, one makes a plain evaluation of it."""
    images.write(painted := new("painted.png"), images.read(CONTENT).rgb.flip(1))
    job = job_of([f"content={CONTENT}", f"style={painted}", f"style_source={CONTENT}"], size)
    copier, content = FrameCopier(job, new("frames"), tuple), job.full_size().content.cpu()

    def paint() -> None:
        frame = content.roll(next(NUMBERS), 3)
        copier.follow(frame, copier.paint(frame).image)

    paint()
    return paint, plain_evaluation(size)


def folder(number: int, side: int) -> Both:
    """Return functions: one paints a folder of photographs, one only reads and writes them."""
    source = photographs(number, side, 3 / 4)

    def copy() -> None:
        (target := new("copies")).mkdir()
        for path in source.iterdir():
            Image.open(path).save(target / path.name)

    return lambda: apply(source, new("painted")), copy


def film(number: int, side: int, steady: float) -> Both:
    """Return functions: one paints a film, one only reads and writes it."""
    copy(photographs(number, side, 9 / 16), path := new("film.mp4"))
    return lambda: apply(path, new("out.mp4"), steady=steady), lambda: copy(path, new("copy.mp4"))


def copy(source: Path, target: Path) -> None:
    """Read a film, or a folder of frames, and write it as a film."""
    with Film(source) as frames, FilmWriter(target, frames) as writer:
        for frame in frames.frames():
            writer.write(*frame)


def photographs(number: int, width: int, aspect: float) -> Path:
    """Write a folder of pictures; each is the previous one, moved by a pixel."""
    (made := new("photographs")).mkdir()
    rgb = images.resize(images.read(CONTENT).rgb, (int(width * aspect) // 2 * 2, width // 2 * 2))
    for shift in range(number):
        images.write(made / f"{shift:03d}.jpg", rgb.roll(shift, 3))
    return made


def apply(source: Path, target: Path, **settings: Any) -> None:
    """Paint with the network `oil`; what it prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        apply_network(ApplyConfig("oil", str(source), str(target), **settings))


def new(name: str) -> Path:
    """Return a path in the current folder at which there is no file yet."""
    return Path(f"{next(NUMBERS)}_{name}").absolute()


def measured(make: Callable[[], Both], rounds: int, device: torch.device, pictures: int) -> str:
    """Return the cells of a row: the ratio, both times, and pictures per second."""
    try:
        timed = seconds_by_round(dict(zip("ab", make(), strict=True)), rounds, device)
    except (UserError, RuntimeError) as error:
        return f"left out: {str(error).splitlines()[0]} | | |"
    ratio = Spread.of([one / other for one, other in zip(*timed.values(), strict=True)])
    ours, theirs = map(median, timed.values())
    return f"{ratio} | {ours:.3g} | {theirs:.3g} | {pictures / ours:.3g}"


def main(given: list[str] | None = None) -> None:
    """Print the table, each row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="?", default="", help="a part of rows' names")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of each row")
    arguments, device = parser.parse_args(given), choose_device("auto")
    keep_freed_memory()
    facts = describe_machine(device) | hardware(device)
    facts["precision"] = str(choose_precision("auto", device))
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print("\n| work | reference | ratio | seconds | reference's | pictures a second |")
    print("|---|---|---:|---:|---:|---:|")
    with TemporaryDirectory() as current, chdir(current):
        for work, reference, make, pictures in rows(device):
            if arguments.words in work:
                cells = measured(make, arguments.rounds, device, pictures)
                print(f"| {work} | {reference} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
