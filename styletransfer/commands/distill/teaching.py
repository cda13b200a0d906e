"""What a teacher says of a batch of pictures, and how far from it the student is."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import Parameter

from styletransfer.commands.distill.inherit import same_channels
from styletransfer.commands.distill.lesson import Lesson, content_gradient, cut, errors, relative
from styletransfer.config import DistillConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.vgg import conv_names
from styletransfer.system.devices import has_native_bfloat16


def autocast(device: torch.device) -> torch.autocast:
    """Return a context in which convolutions run in bfloat16, where `device` has units for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_native_bfloat16(device))


class Teaching:
    """A teacher and its student, cut after the frozen convolutions.

    Args:
        teacher: VGG with its trained weights; it goes to `device`.
        student: on `device`.
        channels: convolution -> the teacher's channels that the student's are to be.
        images: (N, 3, H, W), pictures to find the scale of the student's last frozen layer by.
        config: the recipe.
        device: where to train.
    """

    def __init__(
        self,
        teacher: FeatureExtractor,
        student: FeatureExtractor,
        channels: Mapping[str, Tensor],
        images: Tensor,
        config: DistillConfig,
        device: torch.device,
    ) -> None:
        self.config, self.device, self.channels = config, device, channels
        layers = [name.replace("conv", "relu") for name in conv_names(config.widths)]
        self.seen = layers[config.frozen - 1]
        self.compared = layers[config.frozen :][: config.trained]
        teacher = teacher.ended_at([self.compared[-1]])
        self.teacher = teacher.to(device).to(memory_format=torch.channels_last)
        if has_native_bfloat16(device):
            self.teacher = self.teacher.to(torch.bfloat16)
        self.head, self.tail = cut(student, self.seen)
        if config.content_gradient_weight:
            self.scale = self._scale(images)

    @torch.no_grad()
    def _scale(self, images: Tensor) -> float:
        """Return how many times as large as the teacher's the student's frozen layer is."""
        images = images.to(self.device, memory_format=torch.channels_last)
        theirs = self.teacher(images, [self.seen])[self.seen].float()
        ours = self.head(images, [self.seen])[self.seen]
        return float((ours * theirs).sum() / theirs.square().sum())

    def trained_parameters(self) -> Iterator[Parameter]:
        """Yield the kernels and biases of the student's convolutions that are trained."""
        for layer in self.compared:
            yield from self.tail.layers[layer.replace("relu", "conv")].parameters()

    @torch.no_grad()
    def lesson(self, images: Tensor, contents: Tensor) -> Lesson:
        """Return what the frozen part and the teacher make of a batch.

        Args:
            images: (N, 3, H, W) in [0, 1]; the last n are the student's own.
            contents: (n, 3, H, W), their content images.
        """
        images = images.to(memory_format=torch.channels_last)
        theirs = self.teacher(images, [*self.compared, self.seen])
        wanted = {
            layer: same_channels(theirs[layer], self.channels[layer.replace("relu", "conv")])
            for layer in self.compared
        }
        if not self.config.content_gradient_weight:
            contents = contents[:0]
        gradient = contents
        with autocast(self.device):
            seen = self.head(images, [self.seen])[self.seen]
            if len(contents):
                head, rest = cut(self.teacher, self.seen)
                at = theirs[self.seen][-len(contents) :]
                gradient = content_gradient(rest, at, head(contents, [self.seen])[self.seen])
                contents = self.head(contents, [self.seen])[self.seen]
        return Lesson(seen, wanted, contents, gradient)

    def losses(self, lesson: Lesson) -> dict[str, Tensor]:
        """Return the student's relative errors, 0-d, as `errors` does.

        "content_gradient" is one of them if it counts and the lesson has pictures of its own.
        """
        by_gradient = self.config.content_gradient_weight > 0
        with autocast(self.device):
            ours = self.tail(lesson.seen, self.compared)
            losses = errors(ours, lesson.wanted, by_gradient=by_gradient)
            if len(lesson.contents):
                at = lesson.seen[-len(lesson.contents) :]
                # What is `scale` times as large has a gradient as many times smaller.
                gradient = content_gradient(self.tail, at, lesson.contents) * self.scale
                losses["content_gradient"] = relative(gradient, lesson.gradient)
        return losses

    def total(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the weighted sum that training makes smaller, 0-d."""
        total = losses["features"] + self.config.gram_weight * losses["gram"]
        total = total + self.config.inner_weight * losses["inner"]
        if "content_gradient" in losses:
            total = total + self.config.content_gradient_weight * losses["content_gradient"]
        return total
