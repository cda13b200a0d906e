"""Reads masks, and checks the aspect ratio of masks and label pictures."""

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.convert import Source, as_picture, is_floating, one_layer
from styletransfer.pictures.labels import MAX_REGIONS

# Largest difference between the channels of a pixel of a grey mask, in [0, 1]. JPEG compression
# causes smaller differences.
_GREY = 32 / 255


def read_mask(source: Source, name: str) -> Tensor:
    """Return a mask (1, 1, H, W) in [0, 1]: the grey values of `source`, times its alpha if any.

    `source` is a grey picture, or an array or tensor (H, W), (1, H, W) or (1, 1, H, W) of bool, of
    integers, or of floats in [0, 1]. Integers are grey values up to 255; but in a mask of only 0
    and 1, 1 means 1.0. `name` is the mask's name in messages if it is no file. (UserError if
    `source` has colours, is black everywhere, holds numbers of regions, or cannot be read.)
    """
    picture = as_picture(one_layer(source, name), name)
    if (picture.rgb.amax(1) - picture.rgb.amin(1)).max() > _GREY:
        raise UserError(f"{picture.name} is a colour picture; a mask is grey")
    mask = picture.rgb.mean(1, keepdim=True)
    most = 255.0 * float(mask.max())
    if 0.0 < most < MAX_REGIONS - 0.5 and not is_floating(source):
        if most > 1.5 or mask[mask > 0].amin() < mask.amax():
            kind = f"small numbers only (at most {most:.2g} of 255), as pictures of regions do"
            raise UserError(f"{picture.name} holds {kind}; a mask is 0 and 255, or 0 and 1")
        mask = (mask > 0).float()
    if picture.alpha is not None:
        mask = mask * picture.alpha
    if mask.max() < 0.5 / 255.0:
        raise UserError(f"{picture.name} is an empty mask; paint white (255) what it is to cover")
    return mask


def check_aspect(size: tuple[int, int], picture: tuple[int, int], name: str) -> None:
    """Raise UserError if a mask or label picture differs from its picture in aspect ratio.

    Both sizes are (H, W). After the larger picture is scaled to the longer side of the other, sides
    may differ by 1 pixel or 0.5 %, whichever is more.
    """
    smaller, larger = sorted((size, picture), key=max)
    scale = max(smaller) / max(larger)
    for side, other in zip(smaller, larger, strict=True):
        if abs(other * scale - side) > max(1.0, 0.005 * side):
            raise UserError(
                f"{name} has {size[1]} x {size[0]} pixels and its picture {picture[1]} x "
                f"{picture[0]}: another aspect ratio; crop or extend it like the picture"
            )
