"""The command prove: of each planted fault it says which side is wrong and by what, and of healthy calls that they are
right."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import run_forked
from processes import environment
from report_page import Page
from setting_dumps import SAME, SETTINGS
from thorough import thorough

from msprobe_ms.accuracy.proof.operation import Workshop
from msprobe_ms.accuracy.proof.prove import prove
from msprobe_ms.accuracy.proof.question import question_of_dump, question_of_dumps
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.cli.main import main
from msprobe_ms.comparison.run import Options

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def record(script: str, folder: Path) -> None:
    """Run a script of tests/make in both frameworks at the same time."""

    def run(framework: str, imports: str) -> subprocess.CompletedProcess[str]:
        return run_forked(ROOT / "tests" / "make" / script, framework, folder, framework=imports, env=environment())

    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(run, ("mindspore", "pytorch"), ("mindspore", "torch")):
            assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dumps of proof_dumps.py: ``{fault}_{level}_{task}``, and the golden ones."""
    folder = tmp_path_factory.mktemp("dumps")
    record("proof_dumps.py", folder)
    return folder


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    before = _servers()  # of commands that other tests ran in this process, which end with it
    with Workshop() as begun:
        begun.begin(["mindspore", "pytorch"])
        servers = _servers() - before
        assert len(servers) == 2, "one of each framework"
        yield begun
        assert _servers() - before == servers, "a framework is imported once"


def _servers() -> set[str]:
    """The processes that this one began to import frameworks."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and b"execution.server" in (process / "cmdline").read_bytes():
                found.add(process.name)
    return found


@pytest.fixture
def proved(dumps: Path, workshop: Workshop) -> Any:
    def proof(fault: str, level: str, task: str, node: str) -> Proof:
        sides = dumps / f"{fault}_{level}_{task}", dumps / f"golden_{level}_{task}"
        return prove(question_of_dumps(*sides, node, Options(align=True)), workshop)

    return proof


@pytest.mark.parametrize(
    ("fault", "level", "node", "finding", "says"),
    [
        (
            "epsilon",
            "L0",
            "norm",
            Finding.SETTING,
            "`epsilon` differs: 0.01 in MindSpore's LayerNorm, 1e-05 in PyTorch's",
        ),
        ("weight", "L0", "fc", Finding.PARAMETER, "`weight` differs: it is the transpose of the golden's"),
        (
            "axis",
            "L0",
            "softmax",
            Finding.SETTING,
            "the setting `dim` differs: 1 in MindSpore's Softmax, -1 in PyTorch's Softmax",
        ),
        (
            "gelu",
            "L0",
            "act",
            Finding.SETTING,
            "`approximate` differs: 'tanh' in MindSpore's GELU, 'none' in PyTorch's",
        ),
        ("epsilon", "mix", "norm", Finding.SETTING, "inside of Cell.norm.LayerNorm.forward.0, Primitive"),
        ("weight", "mix", "fc", Finding.PARAMETER, "`weight` differs: it is the transpose of the golden's"),
        ("axis", "mix", "softmax", Finding.SETTING, "the setting `axis` differs: 1 in MindSpore's"),
        (
            "gelu",
            "mix",
            "Functional.gelu.0",
            Finding.SETTING,
            "with 'none' it gives the golden's results, with 'tanh' it does not",
        ),
        ("exchanged", "mix", "Mint.sub.0", Finding.EXCHANGED, "called with exchanged arguments: "),
    ],
)
def test_a_planted_fault_is_named_from_tensors(
    proved: Any, fault: str, level: str, node: str, finding: Finding, says: str
) -> None:
    proof = proved(fault, level, "tensor", node)
    assert (proof.finding, says in proof.sentence) == (finding, True), proof.sentence
    assert not proof.finding.is_right


@pytest.mark.parametrize(
    ("fault", "level", "node", "finding", "says"),
    [
        ("weight", "L0", "fc", Finding.PARAMETER, "`weight` differs"),
        ("gelu", "L0", "act", Finding.SETTING, "had approximate 'tanh'"),
        (
            "epsilon",
            "mix",
            "Primitive.layer_norm.LayerNorm.0",
            Finding.SETTING,
            "`epsilon` differs: 0.01 in MindSpore's LayerNorm, 1e-05 in",
        ),
        (
            "gelu",
            "mix",
            "Functional.gelu.0",
            Finding.SETTING,
            "`approximate` differs: 'tanh' in MindSpore's gelu, 'none' in",
        ),
        ("exchanged", "mix", "Mint.sub.0", Finding.EXCHANGED, "exchanged arguments"),
        ("none", "L0", "norm", Finding.RIGHT, "as far as statistics tell"),
    ],
)
def test_what_statistics_tell_of_a_planted_fault(
    proved: Any, fault: str, level: str, node: str, finding: Finding, says: str
) -> None:
    proof = proved(fault, level, "statistics", node)
    assert (proof.finding, says in proof.sentence) == (finding, True), proof.sentence


def test_an_epsilon_is_told_from_statistics_with_a_range_that_holds_it(proved: Any) -> None:
    told = re.search(r"epsilon \S+ \(about: (\S+) to (\S+)\)", proved("epsilon", "L0", "statistics", "norm").sentence)
    assert told is not None
    assert float(told[1]) <= 1e-2 <= float(told[2])


@pytest.mark.parametrize(("level", "node"), [("L0", "norm"), ("L0", "fc"), ("L0", "act"), ("mix", "Mint.sub.0")])
def test_a_healthy_call_is_right(proved: Any, level: str, node: str) -> None:
    proof = proved("none", level, "tensor", node)
    assert proof.finding is Finding.RIGHT, proof.sentence
    assert all(trial.agrees for trial in proof.trials)


def test_a_healthy_call_that_is_fed_something_wrong_names_what_made_it(proved: Any) -> None:
    proof = proved("epsilon", "L0", "tensor", "act")
    assert proof.finding is Finding.INPUT
    assert "MindSpore's GELU is right, but its input" in proof.sentence
    assert "look at Cell.norm.LayerNorm.forward.0" in proof.sentence


@pytest.mark.parametrize(
    ("fault", "level", "node", "finding", "says"),
    [
        ("none", "L0", "Module.norm.LayerNorm.parameters_grad.0", Finding.RIGHT, "both sides are right"),
        ("none", "mix", "Functional.linear.0.backward", Finding.RIGHT, "both sides are right"),
        (
            "loss",
            "L0",
            "Module.softmax.Softmax.backward.0",
            Finding.INPUT,
            "(it is 1024 times the golden's); look at the",
        ),
        ("loss", "L0", "Module.fc.Linear.parameters_grad.0", Finding.INPUT, "look at Module.norm.LayerNorm.backward.0"),
        ("loss", "mix", "Torch.sub.0.backward", Finding.INPUT, "look at Tensor.__pow__.0.backward, which made it"),
        (
            "hook",
            "L0",
            "Module.fc.Linear.backward.0",
            Finding.INPUT,
            "(it is 2 times the golden's); look at Module.norm",
        ),
        ("operator", "L0", "Module.act.GELU.backward.0", Finding.OPERATOR, "of `input` is not what float64 gives"),
        ("operator", "mix", "Functional.layer_norm.0.backward", Finding.INPUT, "look at Module.act.GELU.backward.0"),
        ("weight", "L0", "Module.fc.Linear.parameters_grad.0", Finding.OPERATOR, "(it is 2 times the right one)"),
        ("saved", "L0", "Module.fc.Linear.parameters_grad.0", Finding.OPERATOR, "gradient of `weight` is not what"),
        ("saved", "mix", "Functional.linear.0.backward", Finding.OPERATOR, "Run again here, it is right"),
    ],
)
def test_a_fault_of_the_backward_pass_is_named_of_pytorch_beside_pytorch(
    dumps: Path, workshop: Workshop, fault: str, level: str, node: str, finding: Finding, says: str
) -> None:
    sides = dumps / f"pytorch_{fault}_{level}_tensor", dumps / f"golden_{level}_tensor"
    proof = prove(question_of_dumps(*sides, node, Options(align=True)), workshop)
    assert (proof.finding, says in proof.sentence) == (finding, True), proof.sentence


@pytest.mark.parametrize(
    ("fault", "level", "task", "node", "finding", "says"),
    [
        ("none", "L0", "tensor", "Cell.fc.Dense.parameters_grad.0", Finding.RIGHT, "both sides are right"),
        ("none", "mix", "tensor", "Primitive.layer_norm.LayerNorm.0.backward", Finding.RIGHT, "both sides are right"),
        (
            "epsilon",
            "L0",
            "tensor",
            "Cell.fc.Dense.backward.0",
            Finding.INPUT,
            "look at Cell.norm.LayerNorm.backward.0",
        ),
        ("epsilon", "L0", "tensor", "Cell.norm.LayerNorm.parameters_grad.0", Finding.SETTING, "with 1e-05 it gives"),
        ("exchanged", "mix", "tensor", "Mint.sub.0.backward", Finding.EXCHANGED, "exchanged arguments"),
        ("none", "L0", "statistics", "Cell.norm.LayerNorm.parameters_grad.0", Finding.RIGHT, "results and gradients"),
        (
            "epsilon",
            "L0",
            "statistics",
            "Cell.fc.Dense.parameters_grad.0",
            Finding.INPUT,
            "Cell.norm.LayerNorm.backward",
        ),
    ],
)
def test_the_backward_pass_of_mindspore_beside_pytorch(
    proved: Any, fault: str, level: str, task: str, node: str, finding: Finding, says: str
) -> None:
    proof = proved(fault, level, task, node)
    assert (proof.finding, says in proof.sentence) == (finding, True), proof.sentence


def test_a_parameter_that_others_use_as_well_is_no_fault_of_its_module(dumps: Path, workshop: Workshop) -> None:
    tied, node = dumps / "pytorch_tied_L0_tensor", "Module.fc.Linear.parameters_grad.0"
    both = prove(question_of_dumps(tied, tied, node, Options(align=True)), workshop)
    assert (both.finding, both.notes) == (
        Finding.RIGHT, ("the gradients of its parameters are not judged: other calls use these parameters as well",)
    )  # fmt: skip
    alone = prove(question_of_dump(tied, node), workshop)
    assert (alone.finding, alone.notes) == (
        Finding.UNDECIDED, ("a parameter that other calls use as well would look the same",)
    )  # fmt: skip


NO_KERNEL = ("rms_eps",)  # of MindSpore on CPU
NOT_RUN = ("off",)  # dropout of MindSpore has no reference


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dumps of setting_dumps.py: ``{framework}_{variant}_{task}``."""
    folder = tmp_path_factory.mktemp("settings")
    record("setting_dumps.py", folder)
    return folder


@pytest.mark.parametrize(
    ("target", "golden", "task"),
    [
        ("mindspore_base", "pytorch_base", "tensor"),
        ("mindspore_near", "pytorch_base", "statistics"),
        ("pytorch_base", "pytorch_base", "statistics"),
        ("pytorch_near", "pytorch_base", "tensor"),
        thorough(("mindspore_base", "pytorch_base", "statistics")),
        thorough(("mindspore_near", "pytorch_base", "tensor")),
        thorough(("mindspore_far", "pytorch_base", "tensor")),
        thorough(("pytorch_base", "pytorch_base", "tensor")),
        thorough(("pytorch_near", "pytorch_base", "statistics")),
        thorough(("pytorch_base", "pytorch_near", "tensor")),
        thorough(("pytorch_base", "pytorch_near", "statistics")),
    ],
)
def test_no_call_whose_setting_differs_is_right_and_no_call_that_is_the_same_is_wrong(
    settings: Path, workshop: Workshop, target: str, golden: str, task: str
) -> None:
    left_out = (*NO_KERNEL, *NOT_RUN) if target.startswith("mindspore") else ()
    same = target.endswith("base") and golden.endswith("base")
    for name in (*SETTINGS, *(SAME if same else ())):
        if name in left_out:
            continue
        sides = settings / f"{target}_{task}", settings / f"{golden}_{task}"
        proof = prove(question_of_dumps(*sides, name, Options(align=True)), workshop)
        assert proof.finding.is_right is same, f"{name}: {proof.sentence}"
        assert proof.finding is not Finding.OPERATOR, f"{name}: {proof.sentence}"


def altered(dumps: Path, folder: Path, name: str, entry: str) -> Path:
    """A copy of a dump in which one element of a recorded result is another."""
    copy = shutil.copytree(dumps / name, folder / name)
    (file,) = copy.rglob(f"{entry}.output.0.*")
    if file.suffix == ".npy":
        array = np.load(file)
        array[1, 2, 3] += 0.01
        np.save(file, array)
    else:
        import torch

        tensor = torch.load(file)
        tensor[1, 2, 3] += 0.01
        torch.save(tensor, file)
    return copy


def test_an_operator_that_gave_something_else_than_it_computes_is_wrong_by_its_own_reference(
    dumps: Path, workshop: Workshop, tmp_path: Path
) -> None:
    wrong = altered(dumps, tmp_path, "none_mix_tensor", "Mint.sub.0.forward")
    alone = prove(question_of_dump(wrong, "Mint.sub.0"), workshop)
    assert alone.finding is Finding.OPERATOR
    assert "Run again here, it is right" in alone.sentence
    golden = dumps / "golden_mix_tensor"
    both = prove(question_of_dumps(wrong, golden, "Mint.sub.0", Options(align=True)), workshop)
    assert both.finding is Finding.OPERATOR
    assert prove(question_of_dump(dumps / "none_mix_tensor", "Mint.sub.0"), workshop).finding is Finding.RIGHT


def test_a_golden_that_is_wrong_by_its_own_reference_is_told(dumps: Path, workshop: Workshop, tmp_path: Path) -> None:
    golden = altered(dumps, tmp_path, "golden_mix_tensor", "Torch.sub.0.forward")
    proof = prove(question_of_dumps(dumps / "none_mix_tensor", golden, "Mint.sub.0", Options(align=True)), workshop)
    assert proof.finding is Finding.GOLDEN
    assert "PyTorch's sub is wrong: its recorded results" in proof.sentence


def test_a_module_of_another_make_is_undecided(dumps: Path, workshop: Workshop) -> None:
    proof = prove(question_of_dump(dumps / "none_L0_statistics", "norm"), workshop)
    assert proof.finding is Finding.UNDECIDED


def test_compare_says_how_to_prove_and_the_demonstration_names_the_epsilon(
    dumps: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report"
    sides = ["-tp", str(dumps / "demo" / "step0"), "-gp", str(ROOT / "samples" / "golden" / "step0")]
    mapping = ["-lm", str(ROOT / "samples" / "layer_mapping.yaml")]
    assert main(["compare", *sides, *mapping, "-o", str(report)]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    _, _, command = last.partition(": msprobe ")
    assert main([*shlex.split(command), "--exit-code", "-o", str(report)]) == 1
    said = capfd.readouterr().out
    assert said.startswith(
        "WRONG: MindSpore's LayerNorm has another setting than PyTorch's LayerNorm, as far as statistics tell: "
        "the results are as far apart as if it had epsilon 0.01 (about"
    )
    assert "): this explains the difference" in said
    assert "Cell.layers.1.norm1.LayerNorm.forward.0" in said
    (file,) = report.glob("proof_*.json")
    written = json.loads(file.read_text())
    assert (written["finding"], written["target_is_right"]) == ("setting", False)
    assert main(["prove", str(report)]) == 0, "without --exit-code"
    capfd.readouterr()
    assert main(["prove", str(report), "--node", "layers.0.norm1"]) == 0
    assert capfd.readouterr().out.startswith("RIGHT: both sides are right")
    (page,) = report.glob("compare_report_*.html")
    right, wrong = Page.of(page).index["proofs"]
    assert (right["answer"], wrong["answer"]) == ("right", "wrong")
    assert "had epsilon 0.01" in Page.of(page).static
