"""Files of Graphviz, read back by their grammar; drawn where Graphviz is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from export_dumps import HOSTILE, WRONG, alone, faulty, hostile, net, number_of

from msprobe_ms.comparison.export.dot import quoted, write
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Topology

_TEXT = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"(?:{_TEXT}|\w+)"
_LIST = rf"\[\w+={_VALUE}(?:, \w+={_VALUE})*\]"
#: Every line that such a file may have.
_LINES = re.compile(
    rf"digraph {_TEXT} {{|\s*(?:graph|node|edge) {_LIST}|\s*subgraph cluster_\d+ {{|\s*label={_TEXT}"
    rf"|\s*n\d+ {_LIST}|\s*n\d+ -> n\d+ {_LIST}|\s*}}"
)


def written(folder: Path, topology: Topology) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in write([topology], Naming(folder, "1"))]


def assert_sound(text: str) -> None:
    for line in text.split("\n")[:-1]:
        assert _LINES.fullmatch(line), line
    bare = re.sub(_TEXT, "", text)
    assert bare.count("{") == bare.count("}")


def test_modules_are_clusters_and_edges_lead_from_call_to_call(tmp_path: Path) -> None:
    (text,) = written(tmp_path, alone(net()))
    assert_sound(text)
    assert text.count("subgraph cluster_") == 3
    assert 'n0 -> n1 [label="[4, 8]"]' in text and "n1 -> n2 [style=dashed]" in text
    assert 'n3 [label="norm: LayerNorm", tooltip="Cell.blocks.1.norm.LayerNorm.forward.0"]' in text
    assert 'label="blocks.1: Block (result)"' in text


def test_origins_stand_out(tmp_path: Path) -> None:
    topology = faulty()
    for side, text in enumerate(written(tmp_path, topology)):
        assert_sound(text)
        (line,) = re.findall(rf"^ *n{number_of(topology, WRONG, side)} \[.*", text, re.MULTILINE)
        assert 'fillcolor="#FF704D", penwidth=3' in line and "origin, error ratio" in line
        assert text.count("#FF704D") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export_1.golden.dot", "export_1.target.dot"]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    (text,) = written(tmp_path, alone(hostile()))
    assert_sound(text)
    assert text.isprintable() or set(filter(lambda each: not each.isprintable(), text)) == {"\n"}
    assert len(re.findall(r"^ *n\d+ \[", text, re.MULTILINE)) == len(HOSTILE) + 1


def test_texts_mean_themselves() -> None:
    assert quoted('a"b\\N&lt;') == '"a\\"b\\\\N&amp;lt;"'
    assert quoted("a", "b\n") == '"a\\nb\\\\n"'


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed: nothing is drawn")
def test_graphviz_draws_hostile_names(tmp_path: Path) -> None:
    (path,) = write([alone(hostile())], Naming(tmp_path, "1"))
    drawn = subprocess.run(["dot", "-Tsvg", str(path)], capture_output=True, check=True, text=True, timeout=60)
    assert "&lt;script&gt;" in drawn.stdout and "<script" not in drawn.stdout
