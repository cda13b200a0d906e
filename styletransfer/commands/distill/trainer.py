"""Distils a wide VGG into a narrow one of its layout, as wide as it where losses act.

Each training step shows teacher and student the same pictures: procedural ones, crops of real
ones, and pictures that optimisation under the student has produced. The student learns the
teacher's activations and Gram matrices. The first convolutions are frozen: what they and the
teacher make of a picture is computed once, however often a step goes over it. Everything random in
step k follows from (seed, k) alone, so a run that is resumed continues bit for bit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from styletransfer.commands.distill.inherit import balance, inherit
from styletransfer.commands.distill.replay_buffer import ReplayBuffer
from styletransfer.commands.distill.teaching import Teaching, autocast
from styletransfer.config import DistillConfig
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import Widths, build, state_keys
from styletransfer.features.weights import packed
from styletransfer.networks.training import generator_at, schedule
from styletransfer.pictures.crops import Crops, Photos
from styletransfer.system.signals import signals_held

# Steps of the generators that are not training steps.
BALANCE, REPLAY, HELD_OUT = -1, -2, 2**40
# Settings that may change between two halves of a run without changing its result.
FREE_SETTINGS = ("device", "pictures", "teacher", "look_every", "checkpoint_every")
ADAM_BETAS = (0.9, 0.99)


class Distillation:
    """One run: a teacher, a student, an optimiser and the replay buffer, advanced step by step.

    Args:
        teacher: VGG with its trained weights, on the CPU; it is rescaled in place.
        photos: real pictures (3, H, W) in [0, 1]; may be empty.
        config: the recipe.
        device: where to train.
        state: of an earlier run with the same recipe, from `state_dict`, to go on from.
        start: the student whose first `config.frozen` convolutions are taken as they are, or None.
            Of the others those that fit are its own too, to be trained further.

    Raises:
        UserError: the state belongs to another recipe.
    """

    def __init__(
        self,
        teacher: FeatureExtractor,
        photos: list[Tensor] | Photos,
        config: DistillConfig,
        device: torch.device,
        state: Mapping[str, Any] | None = None,
        start: FeatureExtractor | None = None,
    ) -> None:
        self.config, self.device = config, device
        if state is not None and state["recipe"] != self._recipe():
            raise UserError(
                "the checkpoint belongs to another recipe; give the same settings, "
                "or another folder with hydra.run.dir=FOLDER"
            )
        widths: Widths = config.widths
        self.make = Crops(photos, config.photo_share, config.crop)
        generator = self._generator(BALANCE)
        images = self.make(config.batch, generator)
        balance(teacher, images)
        if state is None:
            batches = self._batches(generator)
            self.student, self.channels = inherit(
                teacher, widths, batches, config.fit_batches, start, config.frozen
            )
        else:
            self.student, self.channels = build(widths), dict(state["channels"])
            self.student.load_state_dict(state["student"])
        self.student.to(device).to(memory_format=torch.channels_last)
        self.teaching = Teaching(teacher, self.student, self.channels, images, config, device)
        self.trained = list(self.teaching.trained_parameters())
        # Held: torch now imports libraries that abort the process if an exception crosses them.
        with signals_held():
            self.optimizer = Adam(self.trained, lr=config.learning_rate, betas=ADAM_BETAS)
        self.schedule = schedule(self.optimizer, config.steps)
        self.step = 0
        if state is None:
            self.replay = ReplayBuffer.start(
                config.replay_buffer, self.make, self._generator(REPLAY), device
            )
        else:
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.load_state_dict(state["schedule"])
            buffer = {key: value.to(device) for key, value in state["replay_buffer"].items()}
            self.replay = ReplayBuffer(**buffer)
            self.step = state["step"]

    def _recipe(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self.config).items() if k not in FREE_SETTINGS}

    def _generator(self, step: int) -> torch.Generator:
        return generator_at(self.config.seed, step)

    def _batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        while True:
            yield self.make(self.config.batch, generator)

    def advance(self) -> dict[str, Tensor]:
        """Make one training step and return its losses (detached, 0-d) by name.

        Raises:
            UserError: the losses are not finite; that update is not made.
        """
        generator = self._generator(self.step)
        lessons = [self.teaching.lesson(*pictures) for pictures in self._pictures(generator)]
        for parameter in self.trained:
            parameter.requires_grad_(True)
        for _ in range(self.config.passes):
            for index in torch.randperm(len(lessons), generator=generator).tolist():
                losses = self.teaching.losses(lessons[index])
                self._descend(losses)
        self.schedule.step()
        self.step += 1
        return {name: value.detach() for name, value in losses.items()}

    def _pictures(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a step's batches: pictures (N, 3, H, W), and content images (n, 3, H, W).

        The last n pictures are the student's own, made of these content images.
        """
        config = self.config
        own = round(config.batch * config.on_policy)
        rows = torch.randperm(config.replay_buffer, generator=generator).tolist()
        # The replayed pictures' optimisation needs gradients of pictures only.
        self.student.requires_grad_(False)
        for index in range(config.batches):
            images = self.make(config.batch - own, generator).to(self.device)
            some = rows[index * own : (index + 1) * own]
            if own:
                with autocast(self.device):
                    produced = self.replay.advance(self.student, some, self.make, generator)
                images = torch.cat([images, produced])
            yield images, self.replay.content[some]

    def _descend(self, losses: Mapping[str, Tensor]) -> None:
        total = self.teaching.total(losses)
        if not total.isfinite():
            raise self._diverged()
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    @torch.no_grad()
    def held_out(self, batches: int = 4) -> dict[str, float]:
        """Return the mean losses on procedural pictures never trained on, the same every time."""
        totals: dict[str, float] = {}
        make = Crops([], 0.0, self.config.crop)
        for index in range(batches):
            fresh = make(self.config.batch, self._generator(HELD_OUT + index)).to(self.device)
            lesson = self.teaching.lesson(fresh, fresh[:0])
            for name, value in self.teaching.losses(lesson).items():
                totals[name] = totals.get(name, 0.0) + value.item() / batches
        return totals

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs.

        Raises:
            UserError: see `weights`.
        """
        self.weights()  # a student that cannot be written is nothing to go on from
        return {
            "recipe": self._recipe(),
            "channels": self.channels,
            "student": self.student.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "replay_buffer": vars(self.replay),
            "step": self.step,
        }

    def weights(self) -> dict[str, Tensor]:
        """Return the student's tensors under torchvision's key names, on the CPU.

        They are in float16, but the kernels of blocks 4 and 5, most of the file, in int8.

        Raises:
            UserError: one of them is not finite, or too large for float16.
        """
        tensors = {
            f"{key}.{kind}": getattr(self.student.layers[name], kind).detach().half().contiguous()
            for name, key in state_keys(self.config.widths).items()
            for kind in ("weight", "bias")
        }
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise self._diverged()
        keys = state_keys(self.config.widths).items()
        return packed(tensors, [f"{key}.weight" for name, key in keys if name[4] in "45"])

    def _diverged(self) -> UserError:
        return UserError(
            f"the training left the finite numbers at step {self.step}; the last checkpoint "
            f"stands; lower learning_rate={self.config.learning_rate} or the loss weights"
        )
