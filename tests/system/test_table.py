"""The table that a terminal and Markdown both show."""

import pytest

from styletransfer.system.measure import table


def test_columns_are_padded_and_numbers_set_right():
    assert table(["mode", "time"], [["a", "1.25"], ["longer", "10"]]).splitlines() == [
        "| mode   | time |",
        "| ------ | ---: |",
        "| a      | 1.25 |",
        "| longer |   10 |",
    ]
    assert table(["size", "row"], [["8", "a"]], left=[1]).splitlines()[2] == "|    8 | a   |"
    with pytest.raises(ValueError, match="shorter"):
        table(["a", "b"], [["1"]])
