"""Compare pairs of dumps and ask whether the planted module is the first origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import beginnings, parse_entry, parts_named
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from torture.faults.alignment import Alignment, load_truth, module_pairs, score_alignment, variants_of
from torture.faults.catalogue import NETS, Fault
from torture.faults.jobs import AGAIN, DYNAMIC, MINDSPORE, PYTORCH, Job

#: What each pair is compared in.
MODES = ("statistics", "tensor")


@dataclass(frozen=True)
class Case:
    """A pair of dumps: a net of MindSpore with a fault ("" for none) beside the healthy one of ``golden``.

    ``variant``: the names and structure the golden has, to be found out by compare; "" for the same.
    """

    net: str
    fault: str
    golden: str
    mode: str
    level: str = "L0"
    seed: int = 0
    variant: str = ""

    @property
    def target_job(self) -> Job:
        return Job(MINDSPORE, self.net, self.fault, self.seed, self.level, self.mode)

    @property
    def golden_job(self) -> Job:
        return Job(self.golden, self.net, self._golden_change, self.seed, self.level, self.mode)

    @property
    def _golden_change(self) -> str:
        """A healthy net is not compared with itself, but with another run; a compiled one with a dynamic one."""
        if self.fault or self.golden == PYTORCH:
            return self.variant
        return DYNAMIC if NETS[self.net].compiled else AGAIN

    @property
    def planted(self) -> Fault | None:
        return next((fault for fault in NETS[self.net].faults if fault.name == self.fault), None)

    def __str__(self) -> str:
        golden = f"{self.golden}-{self.variant}" if self.variant else self.golden
        return f"{self.net}/{self.fault or 'healthy'}/{golden}/{self.mode}/{self.level}/seed{self.seed}"


@dataclass(frozen=True)
class Score:
    """``hit``: the planted module is the first origin, or a healthy pair is consistent; ``origins``: all, in order.

    ``alignment``: how well modules were paired with those of a variant.
    """

    case: Case
    hit: bool
    planted: str
    verdict: str
    origins: tuple[tuple[str, str], ...]
    alignment: Alignment | None = None

    def as_json(self) -> dict[str, object]:
        origins = [{"name": name, "reason": reason} for name, reason in self.origins]
        return {
            **asdict(self.case),
            "hit": self.hit,
            "planted": self.planted,
            "verdict": self.verdict,
            "alignment": asdict(self.alignment) if self.alignment else None,
            "origins": origins,
        }


def cases(
    nets: Sequence[str], levels: Sequence[str], fault_seeds: Sequence[int], healthy_seeds: Sequence[int]
) -> Iterator[Case]:
    """Every fault and no fault, against both goldens, in both modes."""
    for net in nets:
        for level in levels:
            if level != "L0" and NETS[net].compiled:
                continue  # compiled Cells are recorded at level L0
            for golden in (PYTORCH, MINDSPORE):
                for mode in MODES:
                    for fault, seed in product(NETS[net].faults, fault_seeds):
                        yield Case(net, fault.name, golden, mode, level, seed)
                    for seed in healthy_seeds:
                        yield Case(net, "", golden, mode, level, seed)


def variant_cases(nets: Sequence[str], faulty: Sequence[str]) -> Iterator[Case]:
    """Every variant of the healthy PyTorch net, and with the variants ``faulty`` every fault of the target too."""
    for net, mode in product(nets, MODES):
        for variant in variants_of(net):
            yield Case(net, "", PYTORCH, mode, variant=variant)
            if variant in faulty:
                for fault in NETS[net].faults:
                    yield Case(net, fault.name, PYTORCH, mode, variant=variant)


def score(case: Case, root: Path) -> Score:
    target, golden = _read(case.target_job.step(root)), _read(case.golden_job.step(root))
    if case.variant:
        comparison, alignment = _aligned(case, root, target, golden)
    else:
        comparison, alignment = compare_dumps(target, golden, Options()), None
    origins = tuple((origin.target, origin.reason) for origin in comparison.origins)
    fault = case.planted
    if fault is None:
        # Projections that are fused have no twin of their own, random values no equal.
        partial = case.variant or NETS[case.net].random
        fine = ("consistent", "incomplete") if partial else ("consistent",)
        return Score(case, comparison.verdict in fine, "", comparison.verdict, origins, alignment)
    hit = bool(comparison.origins) and is_planted(comparison.origins[0], fault, target)
    return Score(case, hit, fault.node, comparison.verdict, origins, alignment)


def _aligned(case: Case, root: Path, target: Dump, golden: Dump) -> tuple[Comparison, Alignment]:
    """Compared under the mapping found automatically; judged by the modules that compare paired and those fused."""
    found = align_modules(target, golden)
    comparison = compare_dumps(target, golden, Options(mappings=Mappings(automatic=found.rules)))
    pairs = module_pairs(comparison.pairs)
    for ours, theirs, _ in found.fused:
        for path, _ in ours:
            pairs.setdefault(path, set()).update(other for other, _ in theirs)
    return comparison, score_alignment(pairs, load_truth(root, case.golden_job), target, golden)


def is_planted(origin: Origin, fault: Fault, target: Dump) -> bool:
    """Whether the origin names the planted module, a function called in it, or what takes its wrong value in."""
    entry = entry_of(origin.target, target)
    if entry is None:  # of several modules that the golden has fused
        return fault.node in _parts_of(origin.target)
    module = module_of(entry, target)
    if module == fault.node:
        return True
    takes_in = entry.parsed is not None and entry.parsed.is_module and origin.target.startswith(f"{entry.name}.input.")
    return module in fault.takes and (takes_in or target.mode in fault.unseen)


def _parts_of(name: str) -> set[str]:
    """Paths of the modules that are fused, by the name of a value of theirs."""
    parsed = next((found for begin in beginnings(name) if (found := parse_entry(begin))), None)
    return parts_named(parsed.name) if parsed else set()


def module_of(entry: Entry, dump: Dump) -> str:
    """The path of the module an entry is, or is called in; "" for the net."""
    call = entry if entry.parsed is None or entry.parsed.is_module else dump.entries.get(entry.parent or "")
    return call.parsed.name if call is not None and call.parsed is not None else ""


def entry_of(name: str, dump: Dump) -> Entry | None:
    return next((dump.entries[begin] for begin in beginnings(name) if begin in dump.entries), None)


def _read(step: Path) -> Dump:
    (path,) = find_dumps(step).values()
    return read_dump(path)
