"""Distils a wide VGG into a narrow one of its layout, as wide as it where losses act.

Each training step shows teacher and student the same pictures: procedural ones, crops of real
ones, and pictures that optimisation under the student has produced. The student learns the
teacher's activations and Gram matrices. Everything random in step k follows from (seed, k) alone,
so a run that is resumed continues bit for bit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from styletransfer.commands.distill.inherit import balance, inherit, relative_errors, same_channels
from styletransfer.commands.distill.replay_buffer import LOSS_LAYERS, ReplayBuffer, gram
from styletransfer.config import STYLE_LAYERS, DistillConfig
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import Widths, build, conv_names, state_keys
from styletransfer.optimize.training import generator_at, schedule
from styletransfer.pictures.crops import Crops, Photos
from styletransfer.system.devices import has_native_bfloat16
from styletransfer.system.signals import held

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
    ) -> None:
        self.config, self.device = config, device
        if state is not None and state["recipe"] != self._recipe():
            raise UserError(
                "the checkpoint belongs to another recipe; give the same settings, "
                "or another folder with hydra.run.dir=FOLDER"
            )
        widths: Widths = config.widths
        self.low_precision = has_native_bfloat16(device)
        self.make = Crops(photos, config.photo_share, config.crop)
        # The first convolution sees the same pixels as the teacher's and is copied exactly.
        self.compared = [name.replace("conv", "relu") for name in conv_names(widths)[1:]]
        teacher = teacher.ended_at([self.compared[-1]])
        generator = self._generator(BALANCE)
        balance(teacher, self.make(config.batch, generator))
        if state is None:
            batches = self._batches(generator)
            self.student, self.channels = inherit(teacher, widths, batches, config.fit_batches)
        else:
            self.student, self.channels = build(widths), dict(state["channels"])
            self.student.load_state_dict(state["student"])
        self.teacher = teacher.to(device).to(memory_format=torch.channels_last)
        if self.low_precision:
            self.teacher = self.teacher.to(torch.bfloat16)
        self.student.to(device).to(memory_format=torch.channels_last)
        self.trained = [p for name, p in self.student.named_parameters() if "conv1_1" not in name]
        # Held: torch now imports libraries that abort the process if an exception crosses them.
        with held():
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
            UserError: the losses are not finite; the student is left as it was.
        """
        config, generator = self.config, self._generator(self.step)
        own = round(config.batch * config.on_policy)
        rows = torch.randperm(config.replay_buffer, generator=generator)[:own].tolist()
        images = self.make(config.batch - own, generator).to(self.device)
        # The replayed pictures' optimisation needs gradients of pictures only.
        self.student.requires_grad_(False)
        if own:
            with self._autocast():
                produced = self.replay.advance(self.student, rows, self.make, generator)
            images = torch.cat([images, produced])
        for parameter in self.trained:
            parameter.requires_grad_(True)
        losses = self.losses(images)
        total = losses["features"] + config.gram_weight * losses["gram"]
        total = total + config.inner_weight * losses["inner"]
        if not total.isfinite():
            raise self._diverged()
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        return {name: value.detach() for name, value in losses.items()}

    def losses(self, images: Tensor) -> dict[str, Tensor]:
        """Return the student's relative errors on images (N, 3, H, W): their means, and each layer.

        "features" and "gram" are means over the layers of style transfer, "inner" is the mean over
        the narrow layers between them.
        """
        images = images.to(memory_format=torch.channels_last)
        with torch.no_grad():
            theirs = self.teacher(images, self.compared)
        with self._autocast():
            ours = self.student(images, self.compared)
        for layer in ours:
            theirs[layer] = same_channels(
                theirs[layer], self.channels[layer.replace("relu", "conv")]
            )
        errors = relative_errors(ours, theirs)
        grams = {
            f"gram_{layer}": _gram_error(ours[layer], theirs[layer])
            for layer in STYLE_LAYERS
            if layer in ours
        }
        in_losses = [layer for layer in errors if layer in LOSS_LAYERS]
        inner = [layer for layer in errors if layer not in LOSS_LAYERS]
        return {
            "features": torch.stack([errors[layer] for layer in in_losses]).mean(),
            "gram": torch.stack(list(grams.values())).mean(),
            "inner": torch.stack([errors[layer] for layer in inner]).mean(),
            **{layer: errors[layer] for layer in in_losses},
            **grams,
        }

    @torch.no_grad()
    def held_out(self, batches: int = 4) -> dict[str, float]:
        """Return the mean losses on procedural pictures never trained on, the same every time."""
        totals: dict[str, float] = {}
        make = Crops([], 0.0, self.config.crop)
        for index in range(batches):
            fresh = make(self.config.batch, self._generator(HELD_OUT + index)).to(self.device)
            for name, value in self.losses(fresh).items():
                totals[name] = totals.get(name, 0.0) + value.item() / batches
        return totals

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.low_precision)

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
        """Return the student's tensors in float16 under torchvision's key names, on the CPU.

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
        return tensors

    def _diverged(self) -> UserError:
        return UserError(
            f"the training left the finite numbers at step {self.step}; the last checkpoint "
            f"stands; lower learning_rate={self.config.learning_rate} or the loss weights"
        )


def _gram_error(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return ||G_s - G_t||^2 / ||G_t||^2, the mean over the batch."""
    target = gram(theirs)
    difference = gram(ours) - target
    return (difference.square().sum((1, 2)) / target.square().sum((1, 2))).mean()
