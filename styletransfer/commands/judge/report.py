"""A judgement as tables: a column for each who painted."""

from statistics import mean

from styletransfer.commands.judge.probes import PROBES
from styletransfer.commands.judge.verdict import Judgement, gap_closed
from styletransfer.system.table import table


def tables(judgement: Judgement) -> dict[str, str]:
    """Return heading -> Markdown table."""
    counted = ", ".join(f"{layer} counts {each:g}" for layer, each in judgement.factors.items())
    return {
        "error under VGG-19, mean over pairs": errors(judgement),
        "gap closed" + (counted and f"; {counted}"): gaps(judgement),
        "seconds, mean over pairs": seconds(judgement),
        "probes, mean over pairs": probes(judgement),
    }


def errors(judgement: Judgement) -> str:
    """Return a table with a row for each layer."""
    rows = list(judgement.verdicts.values())
    cells = [
        [layer, *(f"{mean(row[name].errors[layer] for row in rows):.4f}" for name in rows[0])]
        for layer in rows[0]["content"].errors
    ]
    return table(["layer", *judgement.columns], cells)


def gaps(judgement: Judgement) -> str:
    """Return a table with a row for each pair, and their mean."""
    found = {
        pair: [gap_closed(row, name) for name in judgement.columns]
        for pair, row in judgement.verdicts.items()
    }
    found["mean"] = [mean(column) for column in zip(*found.values(), strict=True)]
    cells = [[pair, *(f"{gap:.3f}" for gap in row)] for pair, row in found.items()]
    return table(["pair", *judgement.columns], cells)


def seconds(judgement: Judgement) -> str:
    """Return a table of one row; the content picture, which nobody painted, aside."""
    rows, names = list(judgement.verdicts.values()), judgement.columns[1:]
    cells = [f"{mean(row[name].seconds for row in rows):.3g}" for name in names]
    return table(["", *names], [["seconds", *cells]])


def probes(judgement: Judgement) -> str:
    """Return a table with a row for each probe and a column for the style as well."""
    rows, pictures = list(judgement.probes.values()), ["style", *judgement.columns]
    cells = [
        [name, *(f"{mean(row[picture][name] for row in rows):.4f}" for picture in pictures)]
        for name in PROBES
    ]
    return table(["probe", *pictures], cells)
