"""pandas, for those who want frames; a clear word where it is not installed."""

from __future__ import annotations

from types import ModuleType


def imported_pandas() -> ModuleType:
    """The package; raises ModuleNotFoundError naming the extra that brings it."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise ModuleNotFoundError(
            'pandas is not installed, and .frame needs it: pip install "msprobe-ms[dataframe]"; with MindSpore '
            '"msprobe-ms[mindspore,dataframe]", which keeps the numpy that it needs',
            name="pandas",
        ) from None
    return pandas
