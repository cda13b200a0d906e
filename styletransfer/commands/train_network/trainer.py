"""A style network in training, step by step (Johnson et al. 2016, section 3).

Each step paints a batch of training pictures. What a pastiche is worth, and its gradient, is what
`Objective` says of it, as for a picture that is optimised itself, whatever the loss mode; autograd
takes the gradients of the pastiches back to the weights. Everything random in step k follows from
(seed, k) alone, so a training that is resumed goes on bit for bit.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from styletransfer.commands.train_network.prepare import NetworkJob
from styletransfer.commands.train_network.stability import instability
from styletransfer.errors import UserError
from styletransfer.networks import LAYOUTS, StyleNetwork
from styletransfer.networks.johnson import randomize
from styletransfer.objective.pictures import pair
from styletransfer.objective.whole import Objective, style_targets_of
from styletransfer.optimize.training import generator_at, schedule
from styletransfer.pictures.crops import Crops
from styletransfer.system.signals import held

# Settings that may change between two halves of a training; of styles their hashes count.
FREE_SETTINGS = ("style", "pictures", "preview", "preview_every", "device", "checkpoint_every")
# Norm to which a longer gradient is cut: the first steps would go anywhere.
LONGEST_GRADIENT = 1.0


class NetworkTraining:
    """One training: a network, its average, an optimiser, advanced step by step.

    Args:
        job: what is to be done.
        state: of an earlier training with the same recipe, from `state_dict`, to go on from.

    Attributes:
        network: in training.
        step: steps made.

    Raises:
        UserError: the state belongs to another recipe.
    """

    def __init__(self, job: NetworkJob, state: Mapping[str, Any] | None = None) -> None:
        self.job, self.config = job, job.config
        if state is not None and state["recipe"] != self._recipe():
            raise UserError(
                "the checkpoint belongs to other styles or settings; give the same ones, or "
                "another folder with hydra.run.dir=FOLDER"
            )
        self.make = Crops(job.photos, self.config.photo_share, self.config.crop)
        self.network = StyleNetwork(LAYOUTS[self.config.network], len(job.styles))
        randomize(self.network, self.config.seed)
        self.network.to(job.preview).to(memory_format=torch.channels_last)
        decay = get_ema_multi_avg_fn(self.config.averaging)  # type: ignore[no-untyped-call]
        self.average = AveragedModel(self.network, multi_avg_fn=decay).requires_grad_(False)
        # Held: torch now imports libraries that abort the process if an exception crosses them.
        with held():
            self.optimizer = AdamW(self.network.parameters(), lr=self.config.learning_rate)
        self.schedule = schedule(self.optimizer, self.config.steps)
        self.step = 0
        blank = job.preview.new_zeros(1, 3, self.config.crop, self.config.crop)
        self.styles = [
            (style, style_targets_of(job.extractor, self.config.objective, pair(blank, style)))
            for style in job.styles.values()
        ]
        if state is not None:
            for name in ("network", "average", "optimizer", "schedule"):
                getattr(self, name).load_state_dict(state[name])
            self.step = state["step"]

    def _recipe(self) -> dict[str, Any]:
        kept = {k: v for k, v in asdict(self.config).items() if k not in FREE_SETTINGS}
        return kept | {"styles": self.job.hashes}

    def advance(self) -> dict[str, Tensor]:
        """Make one training step and return its losses (detached, 0-d) by name, the batch's means.

        Raises:
            UserError: they are not finite; the network is left as it was.
        """
        generator = generator_at(self.config.seed, self.step)
        images = self.make(self.config.batch, generator).to(self.job.preview)
        count = len(self.styles)
        numbers = torch.randint(count, (len(images),), generator=generator)
        blend = one_hot(numbers, count).to(images)
        pastiches = self.network(images, blend)
        gradient, losses = self.judged(images, pastiches.detach(), numbers.tolist())
        self.optimizer.zero_grad()
        if self.config.stability > 0:
            found = instability(self.network, images, pastiches, blend, generator)
            losses["stability"] = self.config.stability * found.detach()
            losses["total"] = losses["total"] + losses["stability"]
            torch.autograd.backward([pastiches, self.config.stability * found], [gradient, None])
        else:
            pastiches.backward(gradient)
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

    def judged(
        self, images: Tensor, pastiches: Tensor, numbers: list[int]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the gradient of the mean objective at each pastiche, and the mean losses.

        Args:
            images: (N, 3, H, W) in [0, 1], the content images.
            pastiches: (N, 3, H, W), of them.
            numbers: the style of each.
        """
        gradients, found = [], []
        for index, number in enumerate(numbers):
            one = slice(index, index + 1)
            style, targets = self.styles[number]
            objective = Objective(
                self.job.extractor,
                self.job.mode,
                self.config.objective,
                pair(images[one], style),
                targets,
            )
            leaf = pastiches[one].clone().requires_grad_()
            losses = objective.evaluate(leaf)
            assert leaf.grad is not None
            gradients.append(leaf.grad / len(images))
            found.append({"total": losses.total, **losses.terms})
        means = {name: torch.stack([each[name] for each in found]).mean() for name in found[0]}
        return torch.cat(gradients), means

    @torch.no_grad()
    def preview(self) -> Tensor:
        """Return the preview picture (1, 3, h, S w), painted in each style, side by side."""
        styles = torch.eye(len(self.styles)).to(self.job.preview)
        return torch.cat([self.result(self.job.preview, style[None]) for style in styles], dim=3)

    @property
    def result(self) -> StyleNetwork:
        """The network with the running mean of its weights."""
        averaged = self.average.module
        assert isinstance(averaged, StyleNetwork)
        return averaged

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed training needs."""
        parts = ("network", "average", "optimizer", "schedule")
        return {
            "recipe": self._recipe(),
            "step": self.step,
            **{name: getattr(self, name).state_dict() for name in parts},
        }
