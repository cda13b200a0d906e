"""How small pictures and tiles may be, and who can have tiles."""

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.modes import LossMode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import Inputs


def check_size(extractor: FeatureExtractor, size: tuple[int, int], name: str) -> None:
    """Check that the deepest layer has a position left at (height, width), or name what works."""
    deepest = list(extractor.layers)[-1]
    stride = extractor.stride(deepest)
    height, width = size
    if min(height, width) < stride:
        raise UserError(
            f"{name} comes down to {width} x {height} pixels, too small for {deepest}: the shorter "
            f"side needs at least {stride}; raise size, lower scales, or name shallower layers"
        )


def check_pictures(extractor: FeatureExtractor, pictures: Inputs) -> None:
    """Check the content and the style images of an objective; see `check_size`."""
    names = ["the content image", "the style image"]
    if len(pictures.styles) > 1:
        names[1:] = [f"style image {number + 1}" for number in range(len(pictures.styles))]
    for image, name in zip(pictures.tensors, names, strict=True):
        check_size(extractor, (image.shape[2], image.shape[3]), name)


def smallest_tile(extractor: FeatureExtractor, criterion: Criterion) -> int:
    """Return the stride of the deepest layer in pixels: a tile holds at least one position."""
    ended = extractor.ended_at(criterion.layers)
    return ended.stride(list(ended.layers)[-1])


def check_tile(
    extractor: FeatureExtractor, mode: LossMode, criterion: Criterion, tile: int
) -> None:
    """Refuse tiles of `tile` pixels where there can be none, or none so small."""
    if not mode.is_closed_form:
        raise UserError(
            "tiles need the gradient in closed form: choose loss_mode=autograd_function, or "
            f"tile=off with {mode.name}"
        )
    if tile < (least := smallest_tile(extractor, criterion)):
        raise UserError(
            f"tile={tile} must be at least {least}, the pixels that one position of the deepest "
            "layer stands for; choose tile=auto to have it chosen"
        )
