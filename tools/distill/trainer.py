"""Distils a wide VGG into a narrow one of its layout, as wide as it where losses act.

Each training step shows teacher and student the same pictures: procedural ones, crops of real
ones, and pictures that optimisation under the student has produced. The student learns the
teacher's activations and Gram matrices. Everything random in step k follows from (seed, k) alone,
so a run that is resumed continues bit for bit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import build, state_keys
from styletransfer.features.weights import SCALE
from styletransfer.networks.crops import Crops, Photos
from styletransfer.networks.training import generator_at, schedule
from styletransfer.system.devices import has_native_bfloat16
from styletransfer.system.signals import signals_held
from tools.distill.config import DistillConfig, conv_widths
from tools.distill.errors import errors
from tools.distill.inherit import balance, inherit
from tools.distill.replay_buffer import ReplayBuffer

# Steps of the generators that are not training steps.
BALANCE, REPLAY, HELD_OUT = -1, -2, 2**40
# Settings that may change between two halves of a run without changing its result.
FREE_SETTINGS = ("device", "pictures", "teacher", "look_every", "checkpoint_every")
ADAM_BETAS = (0.9, 0.99)
# Batches of held-out pictures at a look.
HELD_OUT_BATCHES = 4


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

    (UserError: the state belongs to another recipe.)
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
        self.make = Crops(photos, config.photo_share, config.crop)
        generator = self._generator(BALANCE)
        balance(teacher, self.make(config.batch, generator))
        if state is None:
            images = [self.make(config.batch, generator) for _ in range(config.fit_batches)]
            fitted = inherit(teacher, config.widths, images, start, config.frozen)
            self.student, self.channels = fitted
        else:
            self.student, self.channels = build(config.widths), dict(state["channels"])
            self.student.load_state_dict(state["student"])
        self.student.to(device).to(memory_format=torch.channels_last)
        names = list(conv_widths(config.widths))[config.frozen :][: config.trained]
        self.compared = {name.replace("conv", "relu"): name for name in names}
        teacher = teacher.ended_at(self.compared).to(device).to(memory_format=torch.channels_last)
        self.teacher = teacher.to(torch.bfloat16) if has_native_bfloat16(device) else teacher
        self.trained = [
            parameter for name in names for parameter in self.student.layers[name].parameters()
        ]
        # Held: torch now imports libraries that abort the process if an exception crosses them.
        with signals_held():
            self.optimizer = Adam(self.trained, lr=config.learning_rate, betas=ADAM_BETAS)
        self.schedule = schedule(self.optimizer, config.steps)
        self._begin(state)

    def _begin(self, state: Mapping[str, Any] | None) -> None:
        """Set the optimiser, the replay buffer and the step to those of a state."""
        self.step = 0
        if state is None:
            generator, count = self._generator(REPLAY), self.config.replay_buffer
            self.replay = ReplayBuffer.start(count, self.make, generator, self.device)
            return
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        buffer = {key: value.to(self.device) for key, value in state["replay_buffer"].items()}
        self.replay = ReplayBuffer(**buffer)
        self.step = state["step"]

    def _recipe(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self.config).items() if k not in FREE_SETTINGS}

    def _generator(self, step: int) -> torch.Generator:
        return generator_at(self.config.seed, step)

    def advance(self) -> dict[str, Tensor]:
        """Make one training step and return its losses (detached, 0-d) by name.

        (UserError: the losses are not finite; that update is not made.)
        """
        config, generator = self.config, self._generator(self.step)
        own = round(config.batch * config.on_policy)
        rows = torch.randperm(config.replay_buffer, generator=generator).tolist()[:own]
        images = self.make(config.batch - own, generator).to(self.device)
        if own:
            images = torch.cat([images, self._own_pictures(rows, generator)])
        for parameter in self.trained:
            parameter.requires_grad_(True)
        losses = self._losses(images)
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

    def _own_pictures(self, rows: Sequence[int], generator: torch.Generator) -> Tensor:
        """Return these rows (n, 3, H, W) of the replay buffer, optimised further."""
        # Their optimisation needs gradients of pictures only.
        self.student.requires_grad_(False)
        with self._autocast():
            return self.replay.advance(self.student, rows, self.make, generator)

    def _losses(self, images: Tensor) -> dict[str, Tensor]:
        """Return the student's relative errors at pictures (N, 3, H, W), 0-d, as `errors` does."""
        images = images.to(memory_format=torch.channels_last)
        with torch.no_grad():
            wanted = self.teacher(images, self.compared)
        for layer, name in self.compared.items():
            if len(self.channels[name]) < wanted[layer].shape[1]:
                wanted[layer] = wanted[layer][:, self.channels[name]]
        with self._autocast():
            return errors(self.student(images, self.compared), wanted)

    def _autocast(self) -> torch.autocast:
        """Return a context in which convolutions run in bfloat16, where there are units for it."""
        enabled = has_native_bfloat16(self.device)
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Return the mean losses on procedural pictures never trained on, the same every time."""
        totals: dict[str, float] = {}
        make = Crops([], 0.0, self.config.crop)
        for index in range(HELD_OUT_BATCHES):
            images = make(self.config.batch, self._generator(HELD_OUT + index)).to(self.device)
            for name, value in self._losses(images).items():
                totals[name] = totals.get(name, 0.0) + value.item() / HELD_OUT_BATCHES
        return totals

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs (UserError: see `weights`)."""
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
        (UserError: one of them is not finite, or too large for float16.)
        """
        keys = state_keys(self.config.widths)
        tensors = {
            f"{key}.{kind}": getattr(self.student.layers[name], kind).detach().half().contiguous()
            for name, key in keys.items()
            for kind in ("weight", "bias")
        }
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise self._diverged()
        return packed(tensors, [f"{key}.weight" for name, key in keys.items() if name[4] in "45"])

    def _diverged(self) -> UserError:
        return UserError(
            f"the training left the finite numbers at step {self.step}; the last checkpoint "
            f"stands; lower learning_rate={self.config.learning_rate} or the loss weights"
        )


def packed(tensors: Mapping[str, Tensor], kernels: Iterable[str]) -> dict[str, Tensor]:
    """Return tensors with some kernels in int8, and beside each its "KEY_scale".

    A kernel (O, I, h, w) becomes round(kernel / scale) with a scale (O,) in float32 that brings the
    largest weight of each output channel to 127. `styletransfer.features.weights.read`
    multiplies them again.
    """
    result = dict(tensors)
    for key in kernels:
        kernel = tensors[key].float()
        # A channel that is all zero stays so under any scale.
        scale = kernel.flatten(1).abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        result[key] = (kernel / scale[:, None, None, None]).round().to(torch.int8)
        result[key + SCALE] = scale
    return result
