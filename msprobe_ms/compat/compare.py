"""The functions by which scripts of msprobe compare: ``from msprobe.pytorch import compare, compare_distributed``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_list

_Path: TypeAlias = "str | os.PathLike[str]"

#: Keys of ``input_param``: both dumps; the others say what is found beside them, or how much is logged.
_DUMPS = ("npu_json_path", "bench_json_path")
_PASSED_OVER = ("stack_json_path", "npu_path", "bench_path", "is_print_compare_log")


def compare(
    input_param: Mapping[str, Any],
    output_path: _Path,
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    **keywords: Any,
) -> None:
    """Compare two dump.json, log the verdict, and write ``compare_result_{time}.xlsx`` and the rest to a folder.

    ``input_param``   ``{"npu_json_path": …, "bench_json_path": …}``: the dump under suspicion and the one to trust
    ``stack_mode``    add the column of call sites
    ``auto_analyze``  write the advice too

    Columns and rules are those of msprobe 1.1.0. Raises MsprobeError: what cannot be read or paired.
    """
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.reporting.terminal import verdict_lines
    from msprobe_ms.comparison.run import compare_one

    target, golden = _dumps(input_param)
    options = _options(stack_mode, auto_analyze, fuzzy_match, keywords)
    with claimed_timestamp(Path(output_path)) as timestamp:
        outcome = compare_one(target, golden, Path(output_path), options, timestamp)
    for line in verdict_lines(outcome, options.command(target, golden)):
        logger.info("%s", line)


def compare_distributed(npu_dump_dir: _Path, bench_dump_dir: _Path, output_path: _Path, **keywords: Any) -> None:
    """Compare all ranks of two step folders: a table for each pair of ranks, as `compare` writes them for one.

    ``keywords`` are ``stack_mode``, ``auto_analyze`` and ``fuzzy_match``. Raises MsprobeError: what cannot be read or
    paired.
    """
    from msprobe_ms.comparison.many.plan import plan
    from msprobe_ms.comparison.many.run import compare_all
    from msprobe_ms.comparison.many.terminal import Lines
    from msprobe_ms.comparison.reporting.files import claimed_timestamp

    stack, advice, fuzzy = (keywords.pop(name, usual) for name, usual in _SWITCHES.items())
    options = _options(stack, advice, fuzzy, keywords)
    chosen, lines = plan(Path(npu_dump_dir), Path(bench_dump_dir), profile="v110"), Lines(in_full=True)
    with claimed_timestamp(Path(output_path)) as timestamp:
        for found in compare_all(chosen, Path(output_path), options, timestamp):
            for line in lines.of(found):
                logger.info("%s", line)


_SWITCHES = {"stack_mode": False, "auto_analyze": True, "fuzzy_match": False}


def _dumps(input_param: Mapping[str, Any]) -> tuple[Path, Path]:
    form = tr('expected {"npu_json_path": "…/dump.json", "bench_json_path": "…/dump.json"}')
    if not isinstance(input_param, Mapping):
        raise UsageError(tr("compare: input_param is a {name}; {form}", name=type(input_param).__name__, form=form))
    for key in input_param:
        if key not in (*_DUMPS, *_PASSED_OVER):
            raise UsageError(tr("compare: input_param: {key}: unknown key; {form}", key=key, form=form))
    given = [input_param.get(key, input_param.get(key.replace("_json", ""))) for key in _DUMPS]
    for key, path in zip(_DUMPS, given, strict=True):
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise UsageError(
                tr("compare: input_param: {key}: {path} is not accepted; {form}", key=key, path=repr(path), form=form)
            )
    return Path(given[0]), Path(given[1])


def _options(stack: Any, advice: Any, fuzzy: Any, unknown: Mapping[str, Any]) -> Any:
    from msprobe_ms.comparison.settings import Settings

    if unknown:
        accepted = tr_list(_SWITCHES)
        raise UsageError(
            tr(
                "compare: {unknown}: unknown argument; accepted are {accepted}",
                unknown=tr_list(unknown),
                accepted=accepted,
            )
        )
    for name, value in zip(_SWITCHES, (stack, advice, fuzzy), strict=True):
        if not isinstance(value, bool):
            raise UsageError(
                tr("compare: {name}: {value} is not accepted; use True or False", name=name, value=repr(value))
            )
    return Settings(profile="v110", stack=stack, advice=advice, fuzzy=fuzzy).options()
