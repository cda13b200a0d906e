"""Trains a style network step by step (Johnson et al. 2016, section 3).

Each step paints a batch of training pictures. `Objective` computes the losses, and their gradient
with respect to each pastiche, in any loss mode, as if the pastiche itself were optimised. Autograd
propagates these gradients to the network's weights. All random numbers of step k depend only on
(seed, k), so a resumed training draws the same numbers.

Several processes share the batch: each process makes all pictures and evaluates a part of them.
The sums of gradients and losses equal those of a single process, except for rounding.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, LinearLR, LRScheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from styletransfer.copying.copied import held
from styletransfer.errors import UserError
from styletransfer.features.vgg import randomize
from styletransfer.features.weights import digest
from styletransfer.networks import encoder
from styletransfer.networks.johnson import LAYOUTS, StyleNetwork, adopt
from styletransfer.networks.training.prepare import NetworkTask
from styletransfer.networks.training.processes import Processes
from styletransfer.objective import Criterion
from styletransfer.objective.all_targets import style_targets_of
from styletransfer.objective.inputs import pair
from styletransfer.objective.targets import Targets
from styletransfer.objective.whole import Objective
from styletransfer.runs.resume import check_settings
from styletransfer.system.checkpoint import check_like, natural, refused
from styletransfer.system.signals import signals_held

# Settings that may differ when a training is resumed. For `style`, `style_source` and `start`, the
# hashes of the files and weights are compared instead.
FREE_SETTINGS = (
    *("style", "style_source", "start", "pictures", "preview", "preview_every"),
    *("device", "checkpoint_every"),
)
# Attributes of NetworkTraining whose `state_dict` is saved in a checkpoint.
PARTS = ("network", "average", "optimizer", "schedule")
ANOTHER = "the checkpoint is no training's of this version; start afresh"
# Largest norm of the gradient of all weights; a larger gradient, as in the first steps, is scaled
# down to it.
LONGEST_GRADIENT = 1.0
WARMUP_STEPS = 50  # largest number of steps in which the learning rate rises at the start


class Style(NamedTuple):
    """A Style is one of the S styles that the network learns."""

    image: Tensor  # the style image (1, 3, h, w), sRGB in [0, 1], on the device
    targets: Targets  # targets of the style losses
    code: Tensor  # one-hot (1, S): the network's input for this style


class NetworkTraining:
    """A NetworkTraining trains a network step by step, and keeps a running mean of its weights.

    With `state`, a result of `state_dict`, the training continues (UserError if the settings
    differ, or `state` does not fit). Each of several `processes` has its own NetworkTraining.
    """

    def __init__(
        self,
        task: NetworkTask,
        state: Mapping[str, Any] | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.task, self.config, self.processes = task, task.config, processes or Processes()
        if state is not None:
            with refused(ANOTHER):
                check_settings(state.get("recipe", {}), recipe_of(task))
        self.make = task.make
        self.criterion = Criterion.of(self.config.objective)
        self.styles = styles_of(task, self.criterion)
        self.network = initial_network(task)
        self.network.to(task.preview).to(memory_format=torch.channels_last)
        decay = get_ema_multi_avg_fn(self.config.averaging)
        self.average = AveragedModel(self.network, multi_avg_fn=decay).requires_grad_(False)
        # Signals are held, because torch imports libraries here, and an exception in the middle of
        # such an import would abort the process.
        with signals_held():
            self.optimizer = AdamW(self.network.parameters(), lr=self.config.learning_rate)
        self.schedule = schedule(self.optimizer, self.config.steps)
        self.step = 0
        if state is not None:
            self._load(state)

    def _load(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict` of a training with equal settings (UserError: no fit)."""
        zero = torch.zeros(())
        moments = [{"step": zero, "exp_avg": w, "exp_avg_sq": w} for w in self.network.parameters()]
        own = {name: getattr(self, name).state_dict() for name in PARTS}
        with refused(ANOTHER):
            self.step = natural(state["step"], most=self.config.steps)
            if self.step:
                own["optimizer"]["state"] = dict(enumerate(moments))
            for name in PARTS:
                check_like(state[name], own[name])
                getattr(self, name).load_state_dict(state[name])

    def advance(self) -> dict[str, Tensor]:
        """Make one training step; return loss name -> mean over the batch, a scalar tensor.

        (UserError if a loss or a gradient is not finite; the weights are then unchanged.)
        """
        generator = generator_at(self.config.seed, self.step)
        images = self.make(self.config.batch, generator)
        drawn = torch.randint(len(self.styles), (len(images),), generator=generator)
        part = self.processes.shard(len(images))
        share = (part.stop - part.start) / len(images)
        self.optimizer.zero_grad()
        contents = images[part].to(self.task.preview)
        losses = self.differentiate(contents, drawn[part], share)
        losses = {name: share * value for name, value in losses.items()}
        slopes = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        self.processes.all_reduce([*slopes, *losses.values()])
        norm = clip_grad_norm_(self.network.parameters(), LONGEST_GRADIENT)
        if not (losses["total"].isfinite() and norm.isfinite()):
            raise UserError(
                f"the training left the finite numbers at step {self.step}; the last checkpoint "
                f"stands; lower learning_rate={self.config.learning_rate} or the loss weights"
            )
        self.optimizer.step()
        self.schedule.step()
        self.average.update_parameters(self.network)
        self.step += 1
        return losses

    def differentiate(self, images: Tensor, drawn: Tensor, share: float) -> dict[str, Tensor]:
        """Add to the weights' `grad` the gradient of the mean losses of `images`, times `share`.

        Return the mean losses: name -> scalar, not multiplied by `share`.
        `images` are content images (N, 3, H, W) in [0, 1], or pairs (N, 6, H, W) of a content image
        and its painted version; `drawn` (N,) holds the index of each image's style, and `share` is
        N over the number of images in the batch of all processes.
        """
        is_paired = images.shape[1] > 3
        styles = [self.styles[int(number)] for number in drawn]
        pastiches = self.network(images[:, :3], torch.cat([style.code for style in styles]))
        gradients, values = [], []
        for content, pastiche, style in zip(
            torch.split(images[:, -3:], 1), torch.split(pastiches, 1), styles, strict=True
        ):
            inputs = pair(content, style.image)
            if is_paired:
                inputs = replace(inputs, anchor=held(content))
            objective = Objective(
                self.task.extractor, self.task.mode, self.criterion, inputs, style.targets
            )
            leaf = pastiche.detach().clone().requires_grad_()
            losses = objective.evaluate(leaf)
            assert leaf.grad is not None
            gradients.append(leaf.grad / len(images))
            values.append({"total": losses.total, **losses.terms})
        torch.autograd.backward(pastiches, share * torch.cat(gradients))
        return {name: torch.stack([one[name] for one in values]).mean() for name in values[0]}

    @torch.no_grad()
    def preview(self) -> Tensor:
        """Return the preview picture painted in the S styles, side by side: (1, 3, h, S w)."""
        content = self.task.preview
        return torch.cat([self.result(content, style.code) for style in self.styles], dim=3)

    @property
    def result(self) -> StyleNetwork:
        """The network whose weights are the running mean."""
        return cast(StyleNetwork, self.average.module)

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed training needs: plain values and tensors, for a checkpoint."""
        return {
            "recipe": recipe_of(self.task),
            "step": self.step,
            **{name: getattr(self, name).state_dict() for name in PARTS},
        }


def styles_of(task: NetworkTask, criterion: Criterion) -> list[Style]:
    """Return the styles that the network learns, with the targets of their losses."""
    blank = task.preview.new_zeros(1, 3, task.config.crop, task.config.crop)
    codes = torch.split(torch.eye(len(task.styles)).to(task.preview), 1)
    return [
        Style(style, style_targets_of(task.extractor, criterion, pair(blank, style)), code)
        for style, code in zip(task.styles.values(), codes, strict=True)
    ]


def initial_network(task: NetworkTask) -> StyleNetwork:
    """Return the network before the first step, with the weights of `task.start` or random ones."""
    network = StyleNetwork(LAYOUTS[task.config.network], len(task.styles))
    if task.start is None:
        randomize(network, task.config.seed)
        return network
    start = task.start.network
    adopt(network, start)
    if start.encoder is not None:
        features = encoder.style_features(task.preview.device, task.extractor.dtype)
        codes = torch.cat([encoder.moments(features, style) for style in task.styles.values()])
        encoder.set_rows(network, start.encoder(codes.cpu()))
    return network.requires_grad_()


def generator_at(seed: int, step: int) -> torch.Generator:
    """Return the generator, on the CPU, of all random numbers of training step `step`."""
    return torch.Generator().manual_seed(((seed + 1) * 10**9 + step) % 2**64)


def schedule(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Return the learning rate's schedule: a half cosine to 0, times a linear rise at the start."""
    warmup = min(WARMUP_STEPS, steps // 10)
    rise = LinearLR(optimizer, start_factor=1 / (warmup + 1), total_iters=warmup)
    return ChainedScheduler([rise, CosineAnnealingLR(optimizer, T_max=steps)])


def recipe_of(task: NetworkTask) -> dict[str, Any]:
    """Return, as plain values, all that determines the trained weights, except the photographs."""
    settings = {k: v for k, v in asdict(task.config).items() if k not in FREE_SETTINGS}
    start = task.start and digest(task.start.network.state_dict())
    return settings | {"styles": task.hashes, "start": start}
