"""What ``make test`` leaves out by measurement is there: one that was renamed would be run all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from repository import ROOT
from thorough import measured_cases


def test_each_case_that_is_left_out_is_of_a_test_that_is_there_and_keeps_another() -> None:
    functions = Counter(case.partition("[")[0] for case in measured_cases())
    assert functions
    for function in functions:
        file, _, name = function.partition("::")
        source = Path(ROOT, file).read_text("utf-8")
        assert f"def {name.rpartition('::')[2]}(" in source, function
