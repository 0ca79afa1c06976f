"""Settings of a comparison as a user gives them, from the command line or from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msprobe_ms.arrays.custom_metrics import load_algorithms
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.reporting.thresholds import load_thresholds
from msprobe_ms.comparison.run import Options


@dataclass(frozen=True)
class Settings:
    """What to compare by and what to write; files are named, not yet read.

    ``…_mapping``   a yaml file; True is the bare flag of the command: layers are found from the dumps, Cells pair with
                    Modules, functions by the built-in table
    ``inference``   one side is an inference: what only a training has is left out, and layers are found from the dumps
    ``fuzzy``       ignore call indices while pairing
    ``profile``     columns and rules of the table: ``own``, ``latest`` or ``v110``
    ``thresholds``  a yaml file of values to measure and judge by, where not the usual
    ``algorithms``  the user's own metrics, each ``FILE.py:FUNCTION``
    ``csv``, ``stack``, ``advice``  tables as csv, with call sites, and an advisor file
    ``advice_form``  "mindstudio": in the form of its analyzer, not in the profile's
    ``html``, ``html_rows``  the page to look at; "all": with the figures of all rows, however many
    ``html_stacks``  with call sites and paths
    ``log_values``  a line in the log for each value
    """

    layer_mapping: Path | Literal[True] | None = None
    cell_mapping: Path | Literal[True] | None = None
    api_mapping: Path | Literal[True] | None = None
    data_mapping: Path | None = None
    operation_mapping: Path | None = None
    inference: bool = False
    fuzzy: bool = False
    profile: str = "own"
    thresholds: Path | None = None
    algorithms: Iterable[str] = ()
    csv: bool = False
    stack: bool = False
    advice: bool = False
    advice_form: Literal["mindstudio"] | None = None
    html: bool = False
    html_rows: Literal["all"] | None = None
    html_stacks: bool = True
    log_values: bool = False

    def options(self) -> Options:
        """Read the files and return the options of a run. Raises MsprobeError: what cannot be read."""
        thresholds, algorithms = load_thresholds(self.thresholds), load_algorithms(self.algorithms)
        layer = None if self.layer_mapping is True else self.layer_mapping
        return Options(
            mappings=load_mappings(
                self.cell_mapping, layer, self.data_mapping, self.api_mapping, self.operation_mapping
            ),
            align=self.layer_mapping is True or (self.inference and layer is None),
            forward_only=self.inference,
            fuzzy=self.fuzzy,
            profile=self.profile,
            thresholds=thresholds,
            algorithms=algorithms,
            csv=self.csv,
            stack=self.stack,
            advice=self.advice,
            advice_form=self.advice_form,
            html=self.html,
            html_rows=self.html_rows,
            html_stacks=self.html_stacks,
            log_values=self.log_values,
            arguments=(*self._arguments(), *(word for each in algorithms for word in ("-alg", each.source))),
        )

    def _arguments(self) -> Iterator[str]:
        """The arguments of the command compare that pair and measure so, without those of algorithms."""
        files = (
            ("-cm", self.cell_mapping), ("-lm", self.layer_mapping), ("-am", self.api_mapping),
            ("-dm", self.data_mapping), ("-mf", self.operation_mapping), ("--thresholds", self.thresholds),
        )  # fmt: skip
        for option, file in files:
            if file is not None:
                yield option
            if isinstance(file, Path):
                yield str(file)
        if self.fuzzy:
            yield "-f"
        if self.inference:
            yield "--consistent_check"
        if self.profile != "own":
            yield from ("--profile", self.profile)
