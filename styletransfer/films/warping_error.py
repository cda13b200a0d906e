"""How much a painted film flickers: what moving with the input does not explain."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.motion import Motion

# Frames between the two that are compared, for the short and the long term.
GAPS = (1, 5)

# (frame, earlier frame) -> where the points of the frame were in the earlier one.
FindMotion = Callable[[Tensor, Tensor], Motion]


@dataclass
class WarpingError:
    """The mean over pairs of frames of the squared difference that motion does not explain.

    E_warp of Lai et al. 2018 (arXiv:1808.00449), equation 11, with motion and occlusion of the
    input film whatever film is measured; as a mean over channels, too. Pairs across a cut, or
    without a pixel that can be relied on, are left out.

    Attributes:
        total: sum over the pairs.
        pairs: that have been seen.
    """

    total: float = 0.0
    pairs: int = 0

    def add(self, motion: Motion, image: Tensor, before: Tensor) -> None:
        """Take in a pair of frames (1, 3, H, W) of the measured film.

        Args:
            motion: of the input, from the frame to the earlier one.
            image: the frame.
            before: the earlier one.
        """
        relied = motion.reliability.to(image)
        if motion.is_cut or not bool(relied.any()):
            return
        difference = (motion.warped(before) - image).square().mean(1, keepdim=True)
        self.total += float((relied * difference).sum() / relied.sum())
        self.pairs += 1

    @property
    def value(self) -> float:
        """E_warp, for colours in [0, 1]; NaN where there is no pair."""
        return self.total / self.pairs if self.pairs else float("nan")


def warping_errors(
    films: Sequence[Iterable[Tensor]], motion: FindMotion, gaps: Sequence[int] = GAPS
) -> list[list[float]]:
    """Return E_warp for each film and each gap.

    Of each film only as many frames are held as the longest gap spans.

    Args:
        films: frames (1, 3, H, W) in [0, 1]; of the first, which is the input, motion is taken.
        motion: finds it.
        gaps: frames between the two that are compared, at least 1 each.

    Raises:
        UserError: films of different lengths or sizes.
    """
    errors = [[WarpingError() for _ in gaps] for _ in films]
    held: deque[tuple[Tensor, ...]] = deque(maxlen=max(gaps))
    for frames in zip_longest(*films):
        if any(frame is None for frame in frames):
            raise UserError("films of different lengths cannot be compared")
        if len({frame.shape for frame in frames}) > 1:
            raise UserError("films of different sizes cannot be compared")
        for number, gap in enumerate(gaps):
            if gap > len(held):
                continue
            before = held[-gap]
            found = motion(frames[0], before[0])
            for film, frame in enumerate(frames):
                errors[film][number].add(found, frame, before[film])
        held.append(frames)
    return [[each.value for each in film] for film in errors]
