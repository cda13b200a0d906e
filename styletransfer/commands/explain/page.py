"""Fills the templates: one page that a browser opens offline, and its figures as files."""

from collections.abc import Sequence

from styletransfer.commands.explain.facts import Study
from styletransfer.commands.explain.lane_layout import lay_out_groups, lay_out_lanes
from styletransfer.commands.explain.map_layout import colour_of, lay_out_map, style_of
from styletransfer.commands.explain.small_example import CODE, SmallExample
from styletransfer.commands.explain.words import (
    answers,
    count,
    describe_retention,
    figures,
    format_bytes,
    where_entered,
)
from styletransfer.resources import templates

TEMPLATES = templates("styletransfer.commands.explain")
TEMPLATES.globals |= {
    "answers": answers,
    "colour_of": colour_of,
    "count": count,
    "describe_retention": describe_retention,
    "figures": figures,
    "format_bytes": format_bytes,
    "lay_out_groups": lay_out_groups,
    "lay_out_lanes": lay_out_lanes,
    "lay_out_map": lay_out_map,
    "style_of": style_of,
    "where_entered": where_entered,
}


def draw_page(studies: Sequence[Study], example: SmallExample, setting: str) -> str:
    """Return the page as HTML; everything is inside it.

    Args:
        studies: of one evaluation under each loss mode; the first one is shown at the start.
        example: the small one, for the end of the page.
        setting: one line that says what was evaluated.
    """
    template = TEMPLATES.get_template("page.html")
    return template.render(studies=studies, example=example, code=CODE, setting=setting)


def draw_map(study: Study) -> str:
    """Return the map of one evaluation as an SVG file that stands alone."""
    return TEMPLATES.get_template("map.svg").render(study=study, alone=True)


def draw_example(example: SmallExample) -> str:
    """Return the graph of the small example as an SVG file that stands alone."""
    lanes = lay_out_lanes(example.nodes)
    return TEMPLATES.get_template("lanes.svg").render(
        lanes=lanes, label="e = (a + b) * d", alone=True
    )
