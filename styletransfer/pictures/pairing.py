"""Which region takes its style from where."""

from collections.abc import Mapping, Sequence

from styletransfer.errors import UserError
from styletransfer.pictures.regions import SAME, Regions, distance, nearest


def pair_regions(content: Regions, styles: Sequence[Regions]) -> list[list[int | None]]:
    """Return for each style, and each region of the content, the number of its region there.

    Labels pair by colour (within 32 levels of 255) or number, masks by their order. None stands
    where a style does not hold the region, and another one does (UserError: any other misfit).
    """
    regions = range(len(content.names))
    pairs = [[_partner(content, region, style) for region in regions] for style in styles]
    for region in regions:
        if all(partners[region] is None for partners in pairs):
            raise _unpaired(content, region, styles)
    for style, partners in zip(styles, pairs, strict=True):
        for region in range(len(style.names)):
            if region not in partners:
                raise _unpaired(style, region, [content])
    return pairs


def assign(regions: Regions, region_styles: Mapping[str, int], styles: int) -> list[int]:
    """Return for each region of the content the number, from 0, of the style it is painted in.

    `region_styles` maps regions, as `Regions.find` knows them, to numbers of styles from 1 to
    `styles` (UserError: it does not fit, or is needed). Without it a single style goes everywhere,
    and the i-th mask takes the i-th style.
    """
    count = len(regions.names)
    if not region_styles and styles == 1:
        return [0] * count
    if not region_styles and regions.soft and count == styles:
        return list(range(count))
    # As it is typed: in quotes, since shells take braces apart. Hydra knows no # in keys, and would
    # take 1e1000 for a number.
    keys = [name.replace("#", "0x") for name in regions.names]
    pairs = ",".join(f"{key}:{1 + region % styles}" for region, key in enumerate(keys))
    example = f"'region_styles={{{pairs}}}'"
    if not region_styles:
        raise UserError(
            f"{regions.source} has the regions {regions.listed()}, and there are {styles} styles; "
            f"say which takes which, such as {example}"
        )
    chosen: dict[int, int] = {}
    for text, style in region_styles.items():
        region = regions.find(text)
        if region in chosen:
            raise UserError(f"region_styles names {regions.names[region]} twice; keep one of them")
        if not 1 <= style <= styles:
            raise UserError(
                f"region_styles gives {text} the style {style}; styles are numbered from 1 to "
                f"{styles} in the order of style="
            )
        chosen[region] = style - 1
    for region in range(count):
        if region not in chosen:
            raise UserError(
                f"region_styles leaves out {regions.described(region)} of {regions.source}; "
                f"say all, such as {example}"
            )
    return [chosen[region] for region in range(count)]


def _partner(content: Regions, region: int, style: Regions) -> int | None:
    if content.soft != style.soft:
        raise UserError(
            f"{content.source} and {style.source} are masks and labels; give both as label "
            "pictures, or both as lists or folders of masks"
        )
    if content.soft:
        if len(content.names) != len(style.names):
            raise UserError(
                f"{content.source} has {len(content.names)} masks and {style.source} has "
                f"{len(style.names)}; they pair by their order, so give as many"
            )
        return region
    if content.colors and style.colors:
        partner = nearest(content.colors[region], style.colors)
        back = nearest(style.colors[partner], content.colors)
        near = distance(content.colors[region], style.colors[partner]) <= SAME
        return partner if near and back == region else None
    name = content.names[region]
    return style.names.index(name) if name in style.names else None


def _unpaired(regions: Regions, region: int, others: Sequence[Regions]) -> UserError:
    lacking = " and ".join(f"{other.source} has only {other.listed()}" for other in others)
    return UserError(
        f"{regions.source} has the region {regions.described(region)}, and {lacking}; "
        "give both the same regions"
    )
