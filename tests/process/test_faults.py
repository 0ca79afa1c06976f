"""The fault suite: every fault does something where it says, every variant nothing, and a few pairs are scored."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import record_forked
from thorough import sampled

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from torture.faults.__main__ import record
from torture.faults.alignment import Alignment, called, load_truth, module_pairs, score_alignment, variants_of
from torture.faults.catalogue import NETS
from torture.faults.jobs import MINDSPORE, PYTORCH, Job
from torture.faults.score import Case, cases, is_planted, score, variant_cases
from torture.faults.table import alignment_table, misses, table

#: What the tests dump: net → the faults.
_SHORT = {"mlp": ("gelu", "transposed"), "lenet": ("padding", "order"), "gpt": ("mask", "unloaded")}
_CASES = [
    Case(net, fault, golden, mode)
    for net, faults in _SHORT.items()
    for fault in (*faults, "")
    for golden in (PYTORCH, MINDSPORE)
    for mode in ("statistics", "tensor")
]
#: With each net, each golden side and each task.
_SAMPLE = {("mlp", PYTORCH, "tensor"), ("lenet", MINDSPORE, "statistics"), ("gpt", PYTORCH, "statistics")}


def _tried(case: Case) -> bool:
    return (case.net, case.golden, case.mode) in _SAMPLE


_VARIANT = Job(PYTORCH, "gpt", "everything", task="statistics")
_ALIGNED = [Case("gpt", fault, PYTORCH, "statistics", variant="everything") for fault in ("mask", "")]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    root = tmp_path_factory.mktemp("faults")
    cases = [case for case in _CASES if _tried(case) or pytestconfig.getoption("thorough")]
    record(root, {job for case in cases for job in (case.target_job, case.golden_job)} | {_VARIANT}, record_forked)
    return root


def test_there_are_thirteen_nets_with_eight_faults_each_of_all_sorts() -> None:
    assert len(NETS) >= 13
    for name, net in NETS.items():
        names = [fault.name for fault in net.faults]
        assert len(set(names)) == len(names) >= 8, name
    sorts = {fault.name for net in NETS.values() for fault in net.faults}
    wanted = {"eps", "gelu", "scale", "transposed", "residual", "axis", "padding", "half", "mask", "unloaded"}
    assert wanted <= sorts


#: How many faults of each net are tried; `make faults` tries all.
_TRIED = int(os.environ.get("MSPROBE_FAULTS", "1"))


@pytest.mark.parametrize("name", NETS)
def test_every_fault_lies_in_a_cell_that_is_there_and_changes_loss_or_gradients(ms: Any, name: str) -> None:
    recording = importlib.import_module("torture.faults.record_mindspore")
    net = NETS[name]

    def values(edit: Any) -> dict[str, Any]:
        model = recording.make(name, edit, 0)
        for path in {path for fault in net.faults for path in (fault.node, *fault.takes)}:
            recording.at(model, path)
        inputs, expected = recording.tensors(net, 0)
        loss, gradients = recording.training_step(model, edit)(*inputs, expected)
        names = [parameter.name for parameter in model.trainable_params()]
        return {"loss": loss.asnumpy(), **{name: each.asnumpy() for name, each in zip(names, gradients, strict=True)}}

    healthy = values(None)
    assert largest_change(values(None), healthy) == 0
    for fault in random.Random(name).sample(net.faults, min(_TRIED, len(net.faults))):
        assert largest_change(values(fault.edit), healthy) > 1e-6, fault.name


def largest_change(values: dict[str, Any], others: dict[str, Any]) -> float:
    return max(float(abs(values[name] - others[name]).max()) for name in others)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Many times faster for nets this small on a busy machine."""
    torch = importlib.import_module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", NETS)
def test_a_variant_computes_what_the_net_does_and_knows_its_modules(one_thread: None, name: str) -> None:
    recording = importlib.import_module("torture.faults.record_pytorch")
    variants = importlib.import_module("torture.nets.pytorch.variants")
    inputs, _ = recording.tensors(NETS[name], 0)
    healthy = recording.make(name, 0).eval()
    expected, names = healthy(*inputs), list(dict(healthy.named_modules()))
    leaves = {path for path, module in healthy.named_modules() if not list(module.children())}
    for variant in variants.VARIANTS:
        changed = variants.change(recording.make(name, 0), variant)
        assert (changed.net.eval()(*inputs) == expected).all(), variant
        truth, paths = changed.truth(), dict(changed.net.named_modules())
        assert leaves <= set(truth), variant
        assert {path for twins in truth.values() for path in twins} <= set(paths), variant
        assert (list(paths) != names) == (variant in variants_of(name)), variant


@pytest.mark.parametrize("case", sampled(_CASES, _tried), ids=str)
def test_the_planted_module_is_the_first_origin_and_a_healthy_pair_has_none(dumps: Path, case: Case) -> None:
    result = score(case, dumps)
    assert result.hit, result.origins


@pytest.mark.parametrize("case", _ALIGNED, ids=str)
def test_modules_under_other_names_are_found_and_so_is_the_fault(dumps: Path, case: Case) -> None:
    result = score(case, dumps)
    assert result.hit, result.origins
    assert result.alignment is not None and (result.alignment.wrong, result.alignment.missed) == (0, 0)


def test_an_origin_elsewhere_is_a_miss(dumps: Path) -> None:
    case = Case("mlp", "gelu", PYTORCH, "tensor")
    target, golden = (_read(job, dumps) for job in (case.target_job, case.golden_job))
    (origin,) = compare_dumps(target, golden, Options()).origins
    planted = next(fault for fault in NETS["mlp"].faults if fault.name == "gelu")
    other = next(fault for fault in NETS["mlp"].faults if fault.name == "transposed")
    assert is_planted(origin, planted, target)
    assert not is_planted(origin, other, target)
    # What takes the wrong value in counts only by its input.
    assert not is_planted(origin, replace(other, takes=("blocks.1.act",)), target)
    assert is_planted(
        replace(origin, target="Cell.blocks.1.act.GELU.forward.0.input.0"),
        replace(other, takes=("blocks.1.act",)),
        target,
    )


def test_misses_are_told_with_their_reason_and_counted(dumps: Path) -> None:
    hit = score(Case("mlp", "gelu", PYTORCH, "tensor"), dumps)
    missed = replace(hit, hit=False)
    lines = list(misses([hit, missed]))
    assert lines[0] == "MISS mlp/gelu/pytorch/tensor/L0/seed0: planted in blocks.1.act"
    assert lines[1].startswith("   1. Cell.blocks.1.act.GELU.forward.0.output.0: output.0 deviates by ")
    assert len(lines) == 2
    assert list(table([hit, missed]))[-1] == (
        "planted module is the first origin: 1/2 (50.0%); healthy pair consistent: -"
    )


def test_a_variant_has_a_line_with_its_figures(dumps: Path) -> None:
    lines = list(alignment_table([score(case, dumps) for case in _ALIGNED]))
    assert [line.split() for line in lines[1:]] == [
        [name, "1.000", "1.000", "1/1", "1/1", "1.000"] for name in ("everything", "together")
    ]


def test_every_pair_is_a_case() -> None:
    wanted = list(cases(["mlp", "vit"], ["L0"], [0, 1], [2]))
    faults = sum(len(NETS[net].faults) for net in ("mlp", "vit"))
    assert len(wanted) == len(set(wanted)) == 4 * (2 * faults + 2)
    aligned = list(variant_cases(["mlp", "vit"], ["renamed"]))
    assert len(aligned) == len(set(aligned)) == 2 * (faults + len(variants_of("mlp")) + len(variants_of("vit")))


def test_alignment_is_judged_by_pairs_of_modules_that_ran(dumps: Path) -> None:
    target, golden = _read(Job(MINDSPORE, "gpt", task="statistics"), dumps), _read(_VARIANT, dumps)
    truth = load_truth(dumps, _VARIANT)
    count = len(called(target))
    assert count == 1 + 1 + 3 * 9 + 2
    perfect = score_alignment(truth, truth, target, golden)
    assert (perfect.wrong, perfect.missed, perfect.f1, perfect.precision) == (0, 0, 1.0, 1.0)
    first = {path: twins[0] for path, twins in truth.items()}
    assert score_alignment(first, truth, target, golden) == Alignment(right=count, wrong=0, missed=0)
    mistaken = {**first, "wte": first["wpe"], "not.there": first["wpe"]}
    assert score_alignment(mistaken, truth, target, golden) == Alignment(right=count - 1, wrong=1, missed=1)
    assert score_alignment({}, truth, target, golden) == Alignment(right=0, wrong=0, missed=count)


def test_module_pairs_are_read_from_a_comparison(dumps: Path) -> None:
    case = Case("mlp", "", PYTORCH, "tensor")
    target, golden = (_read(job, dumps) for job in (case.target_job, case.golden_job))
    pairs = module_pairs(compare_dumps(target, golden, Options()).pairs)
    assert pairs == {path: {path} for path in called(target)}


def _read(job: Job, dumps: Path) -> Any:
    (path,) = find_dumps(job.step(dumps)).values()
    return read_dump(path)
