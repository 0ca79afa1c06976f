"""What automatic alignment is made of: the alignment of two sequences, and the mapping written from pairs."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.automatic.layer_names import kind_of, likeness
from msprobe_ms.comparison.pairing.automatic.layer_rules import rule_lines, write_rules
from msprobe_ms.comparison.pairing.automatic.sequence import align_in_order, possible
from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.comparison.pairing.rules.modules import LayerRules, ModuleTree

FOLLOW = 1.0


def every_alignment(height: int, width: int):
    """All sets of pairs in order."""
    for count in range(min(height, width) + 1):
        for rows in combinations(range(height), count):
            for columns in combinations(range(width), count):
                yield list(zip(rows, columns, strict=True))


def worth(pairs: list[tuple[int, int]], scores: np.ndarray) -> float:
    """The sum of scores, and what directly following pairs earn; both ends count as pairs."""
    height, width = scores.shape
    ends = [(-1, -1), *pairs, (height, width)]
    following = sum((b[0] - a[0], b[1] - a[1]) == (1, 1) for a, b in pairwise(ends))
    return sum(float(scores[pair]) for pair in pairs) + FOLLOW * following


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_margins_are_those_of_every_alignment_tried(height: int, width: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-2, 6), min_size=height * width, max_size=height * width))
    scores = np.array(values, np.float32).reshape(height, width)
    allowed = possible(scores)
    worths = [
        (worth(pairs, scores), pairs)
        for pairs in every_alignment(height, width)
        if pairs and all(allowed[pair] > 0 for pair in pairs)
    ]
    found = align_in_order(allowed.__getitem__, height, width, FOLLOW)
    if not worths:
        assert found == []
        return
    best = max(value for value, _ in worths)
    certain = {(match.ours, match.theirs): match.margin for match in found if match.margin > 0}
    for pair, margin in certain.items():
        rest = [value for value, pairs in worths if pair not in pairs]
        assert best - max([0.0, *rest]) == pytest.approx(margin) or (not rest and margin > 0)
    needed = set.intersection(*(set(pairs) for value, pairs in worths if value == best))
    assert set(certain) <= needed


def test_what_is_interchangeable_is_not_certain() -> None:
    same = np.full((1, 2), 5, np.float32)
    assert [match.margin for match in align_in_order(same.__getitem__, 1, 2, follow=0.0)] == [0.0]
    assert align_in_order(same.__getitem__, 0, 2) == []


PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "0", "1", "layers"]), min_size=1, max_size=4).map(".".join),
    min_size=1, max_size=10, unique=True,
)  # fmt: skip


@settings(max_examples=150)
@given(PATHS, PATHS, st.randoms(use_true_random=False))
def test_any_pairs_can_be_written(ours: list[str], theirs: list[str], chance) -> None:
    """Whatever belongs together, and whatever has no counterpart, the rules lead there; none at all for equal names."""
    target = [(path, chance.choice(["X", "Y", "Cell"])) for path in ours]
    golden = [(path, chance.choice(["X", "Y", "Cell"])) for path in theirs]
    shuffled = [*theirs, *[None] * len(ours)]
    chance.shuffle(shuffled)
    pairs = dict(zip(ours, shuffled, strict=False))
    rules = write_rules(pairs, target, golden)
    assert "Cell" not in rules  # in a file it means the network
    walk = LayerRules(rules, ModuleTree.of(target), ModuleTree.of(golden))
    for path, wanted in pairs.items():
        led = walk.golden_path(path)[0]
        assert led == wanted if wanted else led not in theirs
    assert write_rules({path: path for path in ours}, target, target) == {}


def test_children_of_a_class_called_cell_come_back_from_the_file(tmp_path) -> None:
    """Networks found by search call their block ``Cell``, which a layer mapping takes for the network itself."""
    target = [("cells.0", "Cell"), ("cells.0.conv", "Conv2d"), ("cells.1", "Cell"), ("cells.1.conv", "Conv2d")]
    golden = [("cells.0", "Block"), ("cells.0.op", "Conv2d"), ("cells.1", "Block"), ("cells.1.op", "Conv2d")]
    pairs = {mine: other for (mine, _), (other, _) in zip(target, golden, strict=True)}
    file = tmp_path / "layer.yaml"
    file.write_text("\n".join(rule_lines(write_rules(pairs, target, golden), {})))
    walk = LayerRules(load_mappings(layer=file).layer, ModuleTree.of(target), ModuleTree.of(golden))
    assert {path: walk.golden_path(path)[0] for path in pairs} == pairs


def test_what_a_class_says_gives_way_to_the_whole_path() -> None:
    """``a.b`` has no counterpart, and its class says so; but what ``a.b.c`` needs had moved it to one."""
    target = [("", "Net"), ("a.b", "Block"), ("a.b.c", "List"), ("a.b.c.d", "List")]
    rules = write_rules({"a.b": "x.y.z", "a.b.c": None, "a.b.c.d": "fc.d"}, target, [("", "Net"), ("fc", "List")])
    walk = LayerRules(rules, ModuleTree.of(target), ModuleTree.of([("fc", "List")]))
    assert [walk.golden_path(path)[0] for path, _ in target] == ["", "x.y.z", "unmatched", "fc.d"]


def test_names_that_yaml_would_misread_are_quoted(tmp_path) -> None:
    rules = {"Layer": {"null": "5", "on": "a: b", "x y": "#", "\x7f\u2028": '"\\'}, "TopLayer": {"层.0": "h.0"}}
    text = "\n".join(rule_lines(rules, {("Layer", "on"): 0.5}))
    assert '"层.0": h.0' in text
    file = tmp_path / "layer.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_mappings(layer=file).layer == rules


def test_kinds_of_layers() -> None:
    assert kind_of("Dense") == kind_of("Linear") == kind_of("ColumnParallelLinear")
    assert kind_of("LlamaRMSNorm") != kind_of("LayerNorm")
    assert kind_of("BertEmbeddings", exact=True) is None
    assert likeness("attn", "attention") > 0.5 > likeness("norm", "attention")
