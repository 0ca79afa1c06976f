"""Thresholds from a yaml file: every figure there is can be changed, and every mistake is one clear error."""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from compare_parts import dump, side_by_side, tensor
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.reporting.profiles import judge
from msprobe_ms.comparison.reporting.profiles.latest import Latest, LatestThresholds
from msprobe_ms.comparison.reporting.profiles.v110 import V110, V110Thresholds
from msprobe_ms.comparison.reporting.thresholds import SECTIONS, Thresholds, load_thresholds
from msprobe_ms.support.errors import UsageError


def loaded(folder: Path, text: str) -> Thresholds:
    path = folder / "thresholds.yaml"
    path.write_text(text, encoding="utf-8")
    return load_thresholds(path)


def test_every_figure_can_be_changed(tmp_path: Path) -> None:
    text = "".join(
        f"{section}:\n" + "".join(f"  {each.name}: 0.125\n" for each in fields(kind) if each.name != "roundings")
        for section, kind in SECTIONS.items()
    )
    changed = loaded(tmp_path, text)
    old, new = changed.profile("v110"), changed.profile("latest")
    assert isinstance(old, V110) and isinstance(new, Latest)
    for figures in (old.thresholds, new.thresholds, changed.tolerances()):
        values = {each.name: getattr(figures, each.name) for each in fields(figures)}
        values.pop("roundings", None)
        assert set(values.values()) == {0.125}


def test_what_is_not_named_stays(tmp_path: Path) -> None:
    changed = loaded(tmp_path, "latest:\n  bad_relative: 1e-3\ntolerances:\n  roundings: {float16: 8}\n")
    new = changed.profile("latest")
    assert isinstance(new, Latest)
    assert new.thresholds == LatestThresholds(bad_relative=0.001)
    assert changed.profile("v110") == V110()
    tolerances = changed.tolerances()
    assert dict(tolerances.roundings) == {**Tolerances().roundings, "float16": 8.0}
    assert tolerances.gradients == Tolerances().gradients


@pytest.mark.parametrize("text", ["", "# nothing\n", "v110:\n", "tolerances: {}\n", "tolerances:\n  roundings:\n"])
def test_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    changed = loaded(tmp_path, text)
    assert changed.profile("v110") == V110(thresholds=V110Thresholds())
    assert dict(changed.tolerances().roundings) == dict(Tolerances().roundings)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("v111: {}", "line 1: the file: 'v111' is no threshold; accepted: v110, latest, tolerances"),
        (
            "latest:\n  good_relativ: 1",
            "line 2: latest: 'good_relativ' is no threshold; accepted: good_relative, bad_relative, good_thousandth, "
            "bad_thousandth, relative_growth, relative_from_nothing, good_cosine, cosine_fall",
        ),
        (
            "v110:\n  poor_cosine: high",
            "line 2: v110.poor_cosine: 'high'; accepted: a number of 0 or more (it is 0.99 by itself)",
        ),
        ("v110:\n  poor_cosine: '0.9'", "line 2: v110.poor_cosine: '0.9'; accepted: a number of 0 or more"),
        ("v110:\n  poor_cosine: true", "line 2: v110.poor_cosine: 'true'; accepted: a number"),
        ("v110:\n  poor_cosine:", "line 2: v110.poor_cosine: nothing; accepted: a number"),
        ("v110:\n  poor_cosine: [1]", "line 2: v110.poor_cosine: a list; accepted: a number"),
        ("v110:\n  poor_cosine: -1", "line 2: v110.poor_cosine: '-1'; accepted: a number of 0 or more"),
        ("v110:\n  poor_cosine: nan", "line 2: v110.poor_cosine: 'nan'; accepted: a number"),
        ("v110: 3", "line 1: v110 holds '3'; accepted: a mapping with keys out of poor_cosine, "),
        ("- v110", "line 1: the file holds a list; accepted: a mapping with keys out of v110, latest, tolerances"),
        (
            "tolerances:\n  roundings: {fp16: 3}",
            "line 2: tolerances.roundings: 'fp16' is no threshold; accepted: float64,",
        ),
        ("tolerances:\n  roundings: 3", "line 2: tolerances.roundings holds '3'; accepted: a mapping with keys out of"),
        (
            "tolerances:\n  roundings: {float16: x}",
            "line 2: tolerances.roundings.float16: 'x'; accepted: a number of 0 or more",
        ),
        ("v110: {}\nv110: {}", "line 2: the file: v110 appears twice; accepted: one value of each"),
        ("v110: [", "line 2, column 1: this is not yaml: "),
        ("!!python/object/apply:os.system [ls]", "line 1: the file holds a list; accepted: a mapping"),
    ],
)
def test_mistakes_name_file_line_key_and_what_is_accepted(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, text)
    assert str(caught.value).startswith(f"thresholds {tmp_path / 'thresholds.yaml'}: {told}")
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "thresholds.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(UsageError):
        load_thresholds(folder / "thresholds.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory; a readable yaml file is needed"):
        load_thresholds(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="line 1 is not UTF-8 text; save the file as UTF-8"):
        load_thresholds(tmp_path / "binary.yaml")
    (tmp_path / "deep.yaml").write_text("[" * 5000)
    with pytest.raises(UsageError, match="line 1: nested deeper than 50 levels"):
        load_thresholds(tmp_path / "deep.yaml")


def test_there_are_three_profiles() -> None:
    with pytest.raises(UsageError, match="profile 'v111' is not accepted; accepted are v110, latest, own"):
        Thresholds().profile("v111")


def test_they_travel_between_processes(tmp_path: Path) -> None:
    changed = loaded(tmp_path, "tolerances:\n  roundings: {float16: 8}\n")
    assert pickle.loads(pickle.dumps(changed)) == changed


@pytest.mark.parametrize(
    ("profile", "text", "usual", "changed"),
    [
        ("own", "tolerances:\n  statistics: 0.2", "differs", "agrees"),
        ("latest", "latest:\n  relative_from_nothing: 0.5\n  bad_relative: 0.06", "warning", "error"),
        ("v110", "v110:\n  statistic_warning: 0.05", "", "Warning"),
    ],
)
def test_they_change_what_a_report_says(tmp_path: Path, profile: str, text: str, usual: str, changed: str) -> None:
    def result(thresholds: Thresholds) -> str:
        array = np.linspace(1, 2, 8, dtype=np.float32)
        same = tensor("input.0", array)
        pair = side_by_side((same, same), (tensor("output.0", array * np.float32(1.1)), tensor("output.0", array)))
        measure([pair], dump([]), dump([]), "statistics", tolerances=thresholds.tolerances())
        judge(Comparison("statistics", [pair]), thresholds.profile(profile))
        return pair.rows[1].result

    assert result(Thresholds()) == usual
    assert result(loaded(tmp_path, text)) == changed


def test_the_example_of_the_docs_is_accepted(tmp_path: Path) -> None:
    docs = (ROOT / "docs" / "compare_columns.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", docs, re.DOTALL)
    assert set(loaded(tmp_path, example).changes) == set(SECTIONS)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("own: {}")
    assert main(["compare", "-tp", "a", "-gp", "b", "--thresholds", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"msprobe: thresholds {path}: line 1: the file: 'own' is no threshold")
