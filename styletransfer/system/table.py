"""A Markdown table that also reads well in a terminal."""

from collections.abc import Collection, Sequence


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """Return a Markdown table, its columns padded to one width and, but for `left`, set right.

    Those are the numbers, from 0, of the columns of words.
    """
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    rule = [
        "-" * width if column in left else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in (headings, rule, *rows)
    )
