"""Distils a wide VGG into a narrow one that has its layout, its tap names and its tapped channels.

Each training step shows teacher and student the same pictures: procedural ones, crops of real
ones, and pictures that optimisation under the student has produced. The student learns the
teacher's activations and Gram matrices. Everything random in step k follows from (seed, k) alone,
so a run that is resumed continues bit for bit.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from styletransfer import procedural
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import Widths, build, conv_names, load, state_keys
from styletransfer.inherit import balance, inherit, relative_errors
from styletransfer.on_policy import STYLE_TAPS, TAPS, Pool, gram

# Full width at every tap, narrow between taps: the taps then are the teacher's own channels, so
# that a Gram matrix of the student approximates the teacher's entry by entry.
STUDENT_WIDTHS: Widths = ((64, 32), (128, 64), (256, 128, 128, 128), (512, 192, 192, 192), (512,))
HELD_OUT_SEED = 2**40


@dataclass
class Recipe:
    """What a distillation does; all that its result depends on besides teacher and pictures.

    Attributes:
        steps: training steps in all; the learning rate falls to zero over them.
        batch: pictures a step.
        crop: side of a training picture in pixels, a multiple of 16.
        on_policy: share of a batch taken from the pool of pictures optimised under the student.
        pool: transfers in that pool.
        photos: share of fresh pictures cropped from real ones, where there are any.
        learning_rate: Adam's, at its peak.
        gram_weight: weight of the relative Gram error beside the relative feature error.
        inner_weight: weight of the layers between taps.
        fit_batches: batches of pictures for the layer-by-layer fit that training starts from.
        seed: of everything random.
    """

    steps: int = 1500
    batch: int = 16
    crop: int = 128
    on_policy: float = 0.4
    pool: int = 48
    photos: float = 0.4
    learning_rate: float = 4e-4
    gram_weight: float = 0.5
    inner_weight: float = 0.2
    fit_batches: int = 24
    seed: int = 0
    widths: tuple[tuple[int, ...], ...] = field(default_factory=lambda: tuple(STUDENT_WIDTHS))  # type: ignore[arg-type]


class Pictures:
    """Endless training crops: procedural pictures mixed with crops of real ones.

    Args:
        photos: real pictures (3, H, W) in [0, 1].
        share: how many of the crops come from them.
        size: side of a crop in pixels.
    """

    def __init__(self, photos: list[Tensor], share: float, size: int) -> None:
        self.photos, self.share, self.size = photos, share if photos else 0.0, size

    def __call__(self, count: int, generator: torch.Generator) -> Tensor:
        """Return (count, 3, size, size) in [0, 1], all random choices from `generator`."""
        return torch.stack([self._one(generator) for _ in range(count)])

    def _one(self, generator: torch.Generator) -> Tensor:
        if torch.rand((), generator=generator) >= self.share:
            return procedural.picture(self.size, generator)
        photo = self.photos[int(torch.randint(len(self.photos), (), generator=generator))]
        shorter = min(photo.shape[1:])
        low = min(1.0, self.size / shorter)
        side = int(shorter * (low + (1 - low) * torch.rand((), generator=generator) ** 2))
        top, left = (
            int(torch.randint(extent - side + 1, (), generator=generator))
            for extent in photo.shape[1:]
        )
        crop = photo[None, :, top : top + side, left : left + side]
        crop = nn.functional.interpolate(
            crop, (self.size, self.size), mode="bilinear", antialias=True, align_corners=False
        )[0]
        return crop.flip(2) if torch.rand((), generator=generator) < 0.5 else crop


class Distillation:
    """One run: a teacher, a student, an optimiser and the pool, advanced step by step."""

    def __init__(
        self, teacher: FeatureExtractor, photos: list[Tensor], recipe: Recipe, device: torch.device
    ) -> None:
        self.recipe, self.device = recipe, device
        self.make = Pictures(photos, recipe.photos, recipe.crop)
        self.inner = [name.replace("conv", "relu") for name in conv_names(recipe.widths)]
        teacher = teacher.ended_at([self.inner[-1]])
        generator = self._generator(-1)
        balance(teacher, self.make(recipe.batch, generator))
        self.student, self.channels = inherit(
            teacher, recipe.widths, self._batches(generator), recipe.fit_batches
        )
        self.teacher = teacher.to(device, torch.bfloat16, memory_format=torch.channels_last)
        self.student.to(device, memory_format=torch.channels_last).requires_grad_(True)
        self.optimizer = torch.optim.Adam(self.student.parameters(), lr=0.0, betas=(0.9, 0.99))
        self.pool = Pool.start(recipe.pool, self.make, generator)
        self.step = 0

    def _generator(self, step: int) -> torch.Generator:
        return torch.Generator().manual_seed((self.recipe.seed + 1) * 10**9 + step)

    def _batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        while True:
            yield self.make(self.recipe.batch, generator)

    def learning_rate(self) -> float:
        """Return the rate of the current step: a short linear rise, then half a cosine to zero."""
        warmup = min(50, self.recipe.steps // 10)
        rise = min(1.0, (self.step + 1) / (warmup + 1))
        fall = 0.5 + 0.5 * math.cos(math.pi * self.step / self.recipe.steps)
        return self.recipe.learning_rate * rise * fall

    def advance(self) -> dict[str, Tensor]:
        """Make one training step and return its losses (detached, 0-d) by name."""
        recipe, generator = self.recipe, self._generator(self.step)
        own = round(recipe.batch * recipe.on_policy)
        rows = torch.randperm(recipe.pool, generator=generator)[:own].tolist()
        images = self.make(recipe.batch - own, generator)
        if own:
            # The pool steps with frozen weights: only the pictures need gradients.
            self.student.requires_grad_(False)
            with self._autocast():
                produced = self.pool.advance(self.student, rows, self.make, generator)
            self.student.requires_grad_(True)
            images = torch.cat([images, produced])
        losses = self.losses(images)
        total = losses["features"] + recipe.gram_weight * losses["gram"]
        total = total + recipe.inner_weight * losses["inner"]
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        return {name: value.detach() for name, value in losses.items()}

    def losses(self, images: Tensor) -> dict[str, Tensor]:
        """Return the relative errors of the student on `images`: features, gram, inner, each tap."""
        images = images.to(self.device).to(memory_format=torch.channels_last)
        with torch.no_grad():
            theirs = self.teacher(images, self.inner)
        with self._autocast():
            ours = self.student(images, self.inner)
        errors = relative_errors(ours, theirs, self.channels)
        grams = []
        for tap in STYLE_TAPS:
            if tap in ours:
                kept = self.channels[tap.replace("relu", "conv")]
                target = gram(theirs[tap][:, kept])
                difference = gram(ours[tap]) - target
                energy = target.square().sum((1, 2))
                grams.append((difference.square().sum((1, 2)) / energy).mean())
        tapped = [tap for tap in errors if tap in TAPS]
        inner = [tap for tap in errors if tap not in TAPS]
        return {
            "features": torch.stack([errors[tap] for tap in tapped]).mean(),
            "gram": torch.stack(grams).mean(),
            "inner": torch.stack([errors[tap] for tap in inner]).mean(),
            **{tap: errors[tap] for tap in tapped},
            **{f"gram_{tap}": value for tap, value in zip(STYLE_TAPS, grams, strict=False)},
        }

    def held_out(self, batches: int = 4) -> dict[str, float]:
        """Return the mean losses on pictures that training never sees, the same at every call."""
        totals: dict[str, float] = {}
        with torch.no_grad():
            for index in range(batches):
                generator = self._generator(HELD_OUT_SEED + index)
                fresh = Pictures([], 0.0, self.recipe.crop)(self.recipe.batch, generator)
                for name, value in self.losses(fresh).items():
                    totals[name] = totals.get(name, 0.0) + value.item() / batches
        return totals

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16)

    def state_dict(self) -> dict[str, object]:
        """Return all that a resumed run needs; see `load_state_dict`."""
        return {
            "recipe": json.dumps({f.name: getattr(self.recipe, f.name) for f in fields(Recipe)}),
            "student": self.student.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "pool": vars(self.pool),
            "step": self.step,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue from a saved state.

        Raises:
            UserError: the state belongs to another recipe.
        """
        if state["recipe"] != self.state_dict()["recipe"]:
            raise UserError(
                "the checkpoint belongs to another recipe; give the same settings or another folder"
            )
        self.student.load_state_dict(state["student"])  # type: ignore[arg-type]
        self.optimizer.load_state_dict(state["optimizer"])  # type: ignore[arg-type]
        self.pool = Pool(**state["pool"])  # type: ignore[arg-type]
        self.step = int(state["step"])  # type: ignore[call-overload]

    def weights(self) -> dict[str, Tensor]:
        """Return the student's tensors in float16 under torchvision's key names."""
        return {
            f"{key}.{kind}": getattr(self.student.layers[name], kind).detach().half().contiguous()
            for name, key in state_keys(self.recipe.widths).items()
            for kind in ("weight", "bias")
        }
