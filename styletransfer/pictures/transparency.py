"""Cuts off a picture's transparent margins, or fills its transparent pixels with colours."""

from dataclasses import replace

from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate

from styletransfer.errors import UserError
from styletransfer.pictures.images import Picture


def visible_box(picture: Picture) -> tuple[slice, slice]:
    """Return slices (rows, columns) of the visible part (UserError if no pixel is visible)."""
    if picture.alpha is None:
        return slice(0, picture.size[0]), slice(0, picture.size[1])
    visible = picture.alpha[0, 0] > 0
    if not visible.any():
        raise UserError(f"{picture.name} is fully transparent; choose one with visible pixels")
    rows, columns = (visible.any(dim=side).nonzero().flatten().tolist() for side in (1, 0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def crop_transparent(picture: Picture) -> Picture:
    """Cut off the fully transparent margins (UserError if no pixel is visible)."""
    if picture.alpha is None:
        return picture
    box = (..., *visible_box(picture))
    return replace(picture, rgb=picture.rgb[box], alpha=picture.alpha[box])


def has_margins(picture: Picture) -> bool:
    """Return whether `crop_transparent` would cut anything (UserError if no pixel is visible)."""
    return crop_transparent(picture).size != picture.size


def fill_transparent(picture: Picture) -> Tensor:
    """Return (1, 3, H, W) with transparent pixels filled from the visible pixels around them.

    Without the fill, a Gram matrix would count transparent pixels as black. Half-transparent pixels
    are laid over the fill. Cut off a style image's margins first, because the fill is smooth and
    has no strokes. (UserError if no pixel is visible.)
    """
    if picture.alpha is None:
        return picture.rgb
    visible_box(picture)  # raises UserError if no pixel is visible
    return _spread(picture.rgb * picture.alpha, picture.alpha).clamp(0.0, 1.0)


def _spread(premultiplied: Tensor, alpha: Tensor) -> Tensor:
    """Fill transparent pixels with averages of the nearest visible colours.

    The farther these are, the larger is the area of the average. This is the pull-push algorithm
    (Gortler et al. 1996, "The Lumigraph").
    """
    size = alpha.shape[2:]
    if max(size) == 1:
        return premultiplied / alpha
    halves = (avg_pool2d(x, 2, ceil_mode=True) for x in (premultiplied, alpha))
    behind = interpolate(_spread(*halves), size, mode="bilinear", align_corners=False)
    return premultiplied + (1.0 - alpha) * behind
