"""Automatic alignment: which module is which, from the dumps alone."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import repository
import yaml
from built_dumps import dump as built
from built_dumps import entry as made
from built_nets import Module, Told, changed, dump_of, keyed, paths
from hypothesis import given, settings
from hypothesis import strategies as st

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.pairing.automatic import Alignment, align_modules
from msprobe_ms.comparison.pairing.modules import destinations, modules_of
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump

DATA = repository.DATA / "mapping"

WIDTH, BATCH = 8, (2, 3)
STREAM, WIDE = (*BATCH, WIDTH), (*BATCH, 4 * WIDTH)


def linear(name: str, out: int = WIDTH, into: int = WIDTH, takes: str = "") -> Module:
    return Module(name, "Dense", (), (*BATCH, into), (*BATCH, out), ((out, into), (out,)), takes=takes)


def norm(name: str) -> Module:
    return Module(name, "LayerNorm", (), STREAM, STREAM, ((WIDTH,), (WIDTH,)))


def attention(name: str) -> Module:
    """q, k and v take the same tensor."""
    takes = "normed"
    parts = (linear("q", takes=takes), linear("k", takes=takes), linear("v", takes=takes), linear("out"))
    return Module(name, "Attention", parts, STREAM, STREAM)


def feed_forward(name: str) -> Module:
    act = Module("act", "GELU", (), WIDE, WIDE)
    parts = (linear("up", 4 * WIDTH), act, linear("down", WIDTH, 4 * WIDTH))
    return Module(name, "FeedForward", parts, STREAM, STREAM)


def layer(name: str) -> Module:
    return Module(
        name, "Layer", (norm("norm1"), attention("attention"), norm("norm2"), feed_forward("ffn")), STREAM, STREAM
    )


def encoder(layers: int = 3) -> tuple[Module, ...]:
    """embedding, a list of layers, norm, head."""
    embedding = Module("embedding", "Embedding", (), BATCH, STREAM, ((50, WIDTH),))
    blocks = Module("layers", "", tuple(layer(str(number)) for number in range(layers)))
    return tuple(keyed(one) for one in (embedding, blocks, norm("norm"), linear("head", 50)))


RENAMED = {
    "embedding": "tokens", "layers": "blocks", "norm1": "input_norm", "attention": "self_attn", "norm2": "post_norm",
    "ffn": "mlp", "q": "query", "k": "key", "v": "value", "out": "dense", "up": "fc1", "act": "gelu", "down": "fc2",
    "norm": "final", "head": "classifier",
}  # fmt: skip
CLASSES = {"Dense": "Linear", "Layer": "TransformerLayer", "Attention": "SelfAttention", "FeedForward": "MLP"}


def renamed(modules: Sequence[Module]) -> list[Module]:
    """As PyTorch would have it."""

    def rename(module: Module) -> Module:
        name, class_name = RENAMED.get(module.name, module.name), CLASSES.get(module.class_name, module.class_name)
        return replace(module, name=name, class_name=class_name)

    return [changed(module, rename) for module in modules]


def truth(ours: Sequence[Module], theirs: Sequence[Module]) -> dict[str, str]:
    """Target path → golden path of the modules with the same key."""
    golden = {module.key: path for top in theirs for path, module in paths(top) if module.class_name}
    return {
        path: golden[module.key]
        for top in ours
        for path, module in paths(top)
        if module.class_name and module.key in golden
    }


def found(alignment: Alignment) -> dict[str, str]:
    return {module[0]: golden[0] for module, (golden, _) in alignment.pairs.items()}


def passed_back(alignment: Alignment, target: Dump, golden: Dump, folder: Path) -> dict[str, str]:
    """What the written file pairs."""
    file = folder / "layer.yaml"
    file.write_text(alignment.text(), encoding="utf-8")
    pairs = destinations(modules_of(target), modules_of(golden), load_mappings(layer=file))
    return {module[0]: there.module[0] for module, there in pairs.items()}


def check(ours: Sequence[Module], theirs: Sequence[Module], folder: Path, told: Told | None = None) -> Alignment:
    """Everything that has a counterpart is paired with it, nothing else is, and the file says the same."""
    target, golden = dump_of("mindspore", ours, told or Told()), dump_of("pytorch", theirs)
    alignment = align_modules(target, golden)
    assert found(alignment) == truth(ours, theirs)
    assert passed_back(alignment, target, golden, folder) == found(alignment)
    return alignment


NO_FIGURES = Told(figures=False)
ONLY_SHAPES = Told(figures=False, parameters=False)
FAULTY = Told(faulty_from="layers.1.norm1", wrong={"layers.2.attention.q"})
NARROW = Told(noise=3e-3)


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY, NARROW, replace(FAULTY, parameters=False)])
def test_other_names(tmp_path: Path, told: Told) -> None:
    alignment = check(encoder(), renamed(encoder()), tmp_path, told)
    assert alignment.rules == {
        "TopLayer": {"embedding": "tokens", "layers": "blocks", "norm": "final", "head": "classifier"},
        "Layer": {"norm1": "input_norm", "attention": "self_attn", "norm2": "post_norm", "ffn": "mlp"},
        "Attention": {"q": "query", "k": "key", "v": "value", "out": "dense"},
        "FeedForward": {"up": "fc1", "act": "gelu", "down": "fc2"},
    }


def test_the_mapping_of_two_real_encoders() -> None:
    alignment = align_modules(read_dump(DATA / "encoder_mindspore_L0"), read_dump(DATA / "encoder_pytorch_L0"))
    assert alignment.rules == yaml.safe_load((DATA / "encoder_layer_mapping.yaml").read_text())
    assert alignment.unmatched_target == alignment.unmatched_golden == []


def wrapped(name: str, class_name: str, inner: Sequence[Module]) -> list[Module]:
    return [Module(name, class_name, tuple(inner), BATCH, (*BATCH, 50), key=f"wrapper {name}")]


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_wrappers_at_the_top_have_no_counterpart(tmp_path: Path, told: Told) -> None:
    """TrainOneStepCell around WithLossCell around the net, beside DistributedDataParallel's ``module``."""
    loss = Module("_loss_fn", "CrossEntropyLoss", (), (*BATCH, 50), (), key="loss")
    backbone = Module("_backbone", "Encoder", tuple(encoder()), BATCH, (*BATCH, 50), key="net")
    ours = wrapped("network", "WithLossCell", [backbone, loss])
    theirs = [Module("module", "Net", tuple(renamed(encoder())), BATCH, (*BATCH, 50), key="net")]
    assert check(ours, theirs, tmp_path, told).unmatched_target == [
        ("network._loss_fn", "CrossEntropyLoss"),
        ("network", "WithLossCell"),
    ]
    check(theirs, ours, tmp_path, told)
    check(ours, renamed(encoder()), tmp_path, told)


def itself(class_name: str, inner: Sequence[Module]) -> list[Module]:
    """The network, with position embeddings of its own."""
    return [Module("", class_name, tuple(inner), BATCH, (*BATCH, 50), ((3, WIDTH),), key="net")]


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_the_networks_themselves_are_each_others(tmp_path: Path, told: Told) -> None:
    alignment = check(itself("Encoder", encoder()), itself("TextModel", renamed(encoder())), tmp_path, told)
    assert alignment.pairs["", "Encoder"][0] == ("", "TextModel")
    assert "" not in {child for children in alignment.rules.values() for child in children}
    wrapper = [Module("net", "Wrapped", tuple(encoder()), BATCH, (*BATCH, 50), key="inner")]
    check(itself("Encoder", wrapper), itself("TextModel", renamed(encoder())), tmp_path, told)


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_a_network_that_one_side_recorded_itself_changes_nothing(tmp_path: Path, told: Told) -> None:
    """Nor is it the counterpart of the module that holds all layers of the other side."""
    theirs = [Module("module", "Net", tuple(renamed(encoder())), BATCH, (*BATCH, 50), key="net")]
    for golden in (theirs, renamed(encoder())):
        target, other = dump_of("mindspore", itself("Encoder", encoder()), told), dump_of("pytorch", golden)
        alignment = align_modules(target, other)
        assert found(alignment) == truth(encoder(), golden)
        assert alignment.text() == align_modules(dump_of("mindspore", encoder(), told), other).text()
        back = align_modules(other, target)
        assert found(back) == truth(golden, encoder())


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, FAULTY])
@pytest.mark.parametrize("which", ["attention", "ffn", "act", "q", "norm1"])
def test_wrappers_in_the_middle_have_no_counterpart(tmp_path: Path, which: str, told: Told) -> None:
    """Of the golden too, and around one layer only."""

    def wrap(module: Module) -> Module:
        if module.name != which:
            return module
        inner = replace(module, name="wrapped")
        return replace(module, class_name="Amp", children=(inner,), weights=(), key=f"around {module.key}")

    around = [changed(top, wrap) for top in encoder()]
    check(around, renamed(encoder()), tmp_path, told)
    check(renamed(encoder()), around, tmp_path, told)
    once = [changed(top, lambda one: wrap(one) if one.key.startswith("layers.1.") else one) for top in encoder()]
    check(once, renamed(encoder()), tmp_path, told)


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_fused_projections_are_named_and_not_paired(tmp_path: Path, told: Told) -> None:
    def fuse(module: Module) -> Module:
        if module.class_name == "Attention":
            qkv = replace(linear("qkv", 3 * WIDTH, takes="normed"), key=f"{module.key}.qkv")
            return replace(module, children=(qkv, module.children[-1]))
        return module

    fused = [changed(top, fuse) for top in encoder()]
    alignment = check(fused, renamed(encoder()), tmp_path, told)
    assert [
        ([path for path, _ in ours], [path for path, _ in theirs]) for ours, theirs, _ in alignment.fused
    ] == [
        ([f"layers.{n}.attention.qkv"], [f"blocks.{n}.self_attn.{part}" for part in ("query", "key", "value")])
        for n in range(3)
    ]  # fmt: skip
    assert "# fused: layers.0.attention.qkv (Dense) = blocks.0.self_attn.query (Linear), " in alignment.text()
    # Rules are suggested for a fused module only where both it and all that it is made of have no twin.
    group, others, _ = alignment.fused[0]
    assert alignment.lines_for({*group}, {*others}) == ["Attention:", "  qkv: query + key + value"]
    given = {"Attention": {"qkv": "query + key + value"}}
    assert alignment.lines_for({*group}, {*others}, given) == []
    assert alignment.lines_for({*group}, {*others}, {"Attention": {"qkv": "query"}}) != []
    assert alignment.lines_for({*group}, {*others[1:]}) == alignment.lines_for(set(), {*others}) == []
    parted = check(encoder(), renamed(fused), tmp_path, told)
    assert [len(ours) for ours, _, _ in parted.fused] == [3, 3, 3]


def test_layers_beside_one_that_uses_the_weights_of_a_child_it_never_calls() -> None:
    """``torch.nn.MultiheadAttention`` and its ``out_proj``: there is no module of the target with its borders."""
    x, above = (2, 3, 8), "Cell.block.attention.Attention.forward.0"
    inner = "Cell.block.attention.self.Self.forward.0"
    dense = {"input.0": x, "output.0": x, "parameters.weight": (8, 8), "parameters.bias": (8,)}
    norm = {"input.0": x, "output.0": x, "parameters.weight": (8,), "parameters.bias": (8,)}
    target = built(
        "mindspore",
        *(
            made(f"Cell.block.attention.self.{name}.Dense.forward.0", dense, inner)
            for name in ("query", "key", "value")
        ),
        made(inner, {"input.0": x, "output.0": x}, above),
        made("Cell.block.attention.dense.Dense.forward.0", dense, above),
        made("Cell.block.attention.norm.LayerNorm.forward.0", norm, above),
        made(above, {"input.0": x, "output.0": x}, "Cell.block.Block.forward.0"),
        made("Cell.block.Block.forward.0", {"input.0": x, "output.0": x}),
    )
    whole = {"input.0": x, "output.0": x, "parameters.in_proj_weight": (24, 8), "parameters.in_proj_bias": (24,)}
    attention = "Module.block.attn.MultiheadAttention"
    golden = built(
        "pytorch",
        made(f"{attention}.forward.0", whole, "Module.block.Block.forward.0"),
        made("Module.block.norm1.LayerNorm.forward.0", norm, "Module.block.Block.forward.0"),
        made("Module.block.Block.forward.0", {"input.0": x, "output.0": x}),
        made("Module.block.attn.out_proj.Linear.parameters_grad.0", {"weight": (8, 8), "bias": (8,)}),
    )
    alignment = align_modules(target, golden)
    (group,) = alignment.fused
    assert [path for path, _ in group[0]] == [
        "block.attention.self.query", "block.attention.self.key", "block.attention.self.value", "block.attention.dense"
    ]  # fmt: skip
    assert [path for path, _ in group[1]] == ["block.attn"]
    assert alignment.pairs["block.attention.dense", "Dense"][0] == ("block.attn.out_proj", "Linear")
    assert ("block.attention.self", "Self") in alignment.unmatched_target
    joined = "attention.self.query + attention.self.key + attention.self.value + attention.dense"
    assert alignment.rules["Block"][joined] == "attn"


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, FAULTY])
def test_a_module_of_layers_beside_one_that_is_a_layer(tmp_path: Path, told: Told) -> None:
    """An attention of four projections beside PyTorch's, which holds its weights itself."""

    def close(module: Module) -> Module:
        if module.class_name != "SelfAttention":
            return module
        weights = ((3 * WIDTH, WIDTH), (3 * WIDTH,))
        return replace(module, class_name="MultiheadAttention", children=(), weights=weights)

    closed = [changed(top, close) for top in renamed(encoder())]
    check(encoder(), closed, tmp_path, told)
    check(closed, encoder(), tmp_path, told)


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_modules_of_one_side_alone(tmp_path: Path, told: Told) -> None:
    """The activation is a function there; here a dropout follows the attention."""
    theirs = [
        changed(top, lambda one: replace(one, children=tuple(c for c in one.children if c.name != "act")))
        for top in encoder()
    ]

    def drop(module: Module) -> Module:
        if module.class_name != "Layer":
            return module
        dropout = Module("dropout", "Dropout", (), STREAM, STREAM, key=f"{module.key} dropout")
        return replace(module, children=(*module.children[:2], dropout, *module.children[2:]))

    check([changed(top, drop) for top in encoder()], renamed(theirs), tmp_path, told)


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, ONLY_SHAPES, FAULTY])
def test_a_pipeline_stage_has_other_numbers(tmp_path: Path, told: Told) -> None:
    shifted = [
        changed(top, lambda one: replace(one, name=str(int(one.name) + 8)) if one.name.isdigit() else one)
        for top in renamed(encoder())
    ]
    alignment = check(encoder(), shifted, tmp_path, told)
    assert alignment.rules["TopLayer"]["layers.2"] == "blocks.10"


def test_other_numbers_of_equal_layers_pair_only_where_figures_tell_which() -> None:
    """Layers 1 and 2 of three: their figures say so; without figures nothing does."""
    part = [
        replace(top, children=top.children[1:]) if top.name == "layers" else top for top in encoder()
    ]  # fmt: skip
    alignment = align_modules(dump_of("mindspore", part), dump_of("pytorch", renamed(encoder())))
    assert found(alignment) == truth(part, renamed(encoder()))
    unsure = align_modules(dump_of("mindspore", part, NO_FIGURES), dump_of("pytorch", renamed(encoder())))
    assert not [path for path in found(unsure) if path.startswith("layers")]
    assert "# unmatched in the target: layers.1.norm1 (LayerNorm), perhaps blocks." in unsure.text()


def test_the_order_of_execution_may_differ_where_figures_tell(tmp_path: Path) -> None:
    def turn(module: Module) -> Module:
        if module.class_name != "Attention":
            return module
        q, k, v, out = module.children
        return replace(module, children=(v, q, k, out))

    turned = [changed(top, turn) for top in encoder()]
    check(turned, renamed(encoder()), tmp_path)
    check(turned, renamed(encoder()), tmp_path, replace(FAULTY, wrong=set()))


@pytest.mark.parametrize("told", [Told(), NO_FIGURES, NARROW])
def test_branches_that_run_in_another_order(tmp_path: Path, told: Told) -> None:
    """A residual block whose shortcut runs first here and last there."""
    image = (2, 8, 6, 6)

    def convolution(name: str, size: int) -> Module:
        return Module(name, "Conv2d", (), image, image, ((8, 8, size, size),))

    def batch_norm(name: str) -> Module:
        return Module(name, "BatchNorm2d", (), image, image, ((8,), (8,)))

    def block(name: str, *branches: str) -> Module:
        built = {
            "main": [convolution("conv1", 3), batch_norm("bn1"), convolution("conv2", 3), batch_norm("bn2")],
            "shortcut": [Module("shortcut", "Sequential", (convolution("0", 1),), image, image)],
        }
        return Module(name, "Block", tuple(one for branch in branches for one in built[branch]), image, image)

    ours = [keyed(block(f"block{n}", "shortcut", "main")) for n in range(3)]
    theirs = [keyed(block(f"block{n}", "main", "shortcut")) for n in range(3)]
    check(ours, theirs, tmp_path, told)


def test_weights_of_a_sibling_do_not_hide_that_they_were_loaded_into_the_wrong_place() -> None:
    """Names agree, figures of q and k are exchanged: q stays q."""
    turned = [
        changed(
            top,
            lambda one: (
                replace(one, key=one.key[:-1] + {"q": "k", "k": "q"}[one.name]) if one.name in ("q", "k") else one
            ),
        )
        for top in encoder()
    ]
    alignment = align_modules(dump_of("mindspore", turned), dump_of("mindspore", encoder()))
    assert alignment.rules == {}
    assert found(alignment)["layers.0.attention.q"] == "layers.0.attention.q"


def test_calls_are_one_module(tmp_path: Path) -> None:
    shared = [changed(top, lambda one: replace(one, calls=4) if one.name == "norm" else one) for top in encoder(1)]
    check(shared, renamed(shared), tmp_path)


def test_without_forward_entries_the_backward_tells_the_order() -> None:
    sides = []
    for framework, modules in (("mindspore", encoder()), ("pytorch", renamed(encoder()))):
        dump = dump_of(framework, modules)
        turned = dump_of(framework, [])
        for name, entry in reversed(dump.entries.items()):
            backward = name.replace(".forward.", ".backward.")
            parsed = entry.parsed.in_direction("backward")
            turned.entries[backward] = replace(entry, name=backward, parsed=parsed)
        sides.append(turned)
    assert found(align_modules(*sides)) == truth(encoder(), renamed(encoder()))


def test_nothing_to_align() -> None:
    empty = dump_of("mindspore", [])
    alignment = align_modules(empty, dump_of("pytorch", encoder(1)))
    assert alignment.pairs == {} and alignment.rules == {}
    assert yaml.safe_load(alignment.text()) is None
    other = [Module("a", "Conv2d", (), (1, 3, 8, 8), (1, 4, 8, 8), ((4, 3, 1, 1),), key="a")]
    assert align_modules(dump_of("mindspore", other), dump_of("pytorch", encoder(1))).pairs == {}


# Any net.

_KINDS = ("Dense", "LayerNorm", "Conv2d", "ReLU", "GELU", "Dropout", "Embedding", "Mine")


@st.composite
def nets(draw: st.DrawFn) -> list[Module]:
    """Up to four levels; names may repeat from parent to parent, classes anywhere."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    depth = draw(st.integers(1, 4))

    def make(name: str, level: int) -> Module:
        if level == depth or chance.random() < 0.4:
            kind, size = chance.choice(_KINDS), chance.choice((4, 8, 16))
            weights = ((size, 4),) if kind in _KINDS[:3] else ()
            return Module(name, kind, (), (2, 4), (2, size), weights)
        below = tuple(make(chance.choice("abcdef") + str(n), level + 1) for n in range(chance.randint(1, 4)))
        class_name = chance.choice(("Block", "Layer", "Net", "SequentialCell", ""))
        return Module(name, class_name, below, (2, 4), (2, chance.choice((4, 8, 16))))

    return [keyed(make(f"{chance.choice('abc')}{n}", 1)) for n in range(draw(st.integers(1, 5)))]


@settings(max_examples=60, deadline=None)
@given(nets(), st.sampled_from([Told(), NO_FIGURES]))
def test_a_dump_pairs_with_itself_completely(modules: list[Module], told: Told) -> None:
    dump = dump_of("mindspore", modules, told)
    alignment = align_modules(dump, dump)
    assert found(alignment) == {path: path for path, _ in modules_of(dump)}
    assert alignment.rules == {}


@settings(max_examples=80, deadline=None)
@given(nets(), st.randoms(use_true_random=False), st.sampled_from([Told(), NO_FIGURES]))
def test_whatever_is_renamed_wrapped_or_left_out_no_pair_is_wrong(
    modules: list[Module], chance: random.Random, told: Told
) -> None:
    """And the mapping, passed back, gives the pairs that were found."""
    names: dict[str, str] = {}
    wrap, leave = chance.choice("abcdef"), chance.choice(("ReLU", "Dropout", "none"))

    def change(module: Module) -> Module:
        kept = tuple(child for child in module.children if child.children or child.class_name != leave)
        name = names.setdefault(module.name, f"x{len(names)}{chance.choice('pqr')}")
        module = replace(module, name=name, children=kept or module.children)
        if module.key.rpartition(".")[2].startswith(wrap):
            around = replace(module, weights=(), key=f"around {module.key}", class_name="Wrapper")
            return replace(around, children=(replace(module, name="inner"),))
        return module

    ours = [changed(top, change) for top in modules]
    target, golden = dump_of("mindspore", ours, told), dump_of("pytorch", modules)
    alignment = align_modules(target, golden)
    right = truth(ours, modules)
    wrong = {path: other for path, other in found(alignment).items() if right.get(path) != other}
    if not told.figures:  # of two equal neighbours the one beside what is paired is taken, and little confidence given
        wrong = {path: other for (path, _), (other, sure) in alignment.pairs.items() if path in wrong and sure > 0.6}
    assert wrong == {}
    pairs = destinations(modules_of(target), modules_of(golden), Mappings(layer=alignment.rules))
    assert {module[0]: there.module[0] for module, there in pairs.items()} == found(alignment)


# The command.


def test_bare_lm_compares_and_writes_the_mapping(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = ["-tp", str(DATA / "encoder_mindspore_L0"), "-gp", str(DATA / "encoder_pytorch_L0"), "--csv"]
    assert main(["compare", *sides, "-o", str(tmp_path / "bare"), "-lm"]) == 0
    bare = capsys.readouterr().out.splitlines()
    (file,) = (tmp_path / "bare").glob("layer_mapping_*.yaml")
    (summary,) = (tmp_path / "bare").glob("compare_summary_*.json")
    assert "layer_mapping.yaml" in json.loads(summary.read_text())["files"]
    assert bare[-1].startswith(f"report: {tmp_path}/bare/compare_report_")
    assert bare[-1].endswith(f" are listed in {summary.name})")
    assert not [line for line in bare if "without a counterpart" in line or "try -lm" in line]
    assert main(["compare", *sides, "-o", str(tmp_path / "back"), "-lm", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == bare[:2]
    tables = [
        next(folder.glob("compare_result_*.csv")).read_text() for folder in (tmp_path / "bare", tmp_path / "back")
    ]
    assert tables[0] == tables[1]


@pytest.mark.processes
def test_the_mapping_written_once_serves_all_ranks_that_are_like_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("mindspore", "pytorch"):
        for rank in range(2):
            shutil.copytree(DATA / f"encoder_{side}_L0", tmp_path / side / "step0" / f"rank{rank}")
    sides = ["-tp", str(tmp_path / "mindspore"), "-gp", str(tmp_path / "pytorch"), "--csv"]
    assert main(["compare", *sides, "-o", str(tmp_path / "bare"), "-lm"]) == 0
    (file,) = (tmp_path / "bare").glob("layer_mapping_*.yaml")
    assert file.stem.rpartition("_")[0] == "layer_mapping"
    reports = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("report: ", "also written: "))]
    (summary,) = (tmp_path / "bare").glob("compare_summary_2*.json")
    (page,) = (tmp_path / "bare").glob("compare_report_2*.html")
    assert reports == [f"also written: {file}", f"also written: {summary}", f"report: {page} (open it first)"]
    named = [rank["reports"] for rank in json.loads(summary.read_text())["ranks"]]
    assert named == ["rank0", "rank1"]
    assert len([*(tmp_path / "bare").glob("compare_result_rank1_*.csv")]) == 1
    assert main(["compare", *sides, "-o", str(tmp_path / "back"), "-lm", str(file)]) == 0
    tables = [sorted((tmp_path / folder).glob("compare_result_rank*.csv")) for folder in ("bare", "back")]
    assert [path.read_text() for path in tables[0]] == [path.read_text() for path in tables[1]]


@pytest.mark.processes
def test_a_rank_that_pairs_otherwise_has_a_mapping_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("mindspore", "pytorch"):
        for rank in range(3):
            folder = tmp_path / side / "step0" / f"rank{rank}"
            shutil.copytree(DATA / f"encoder_{side}_L0", folder)
    other = tmp_path / "pytorch" / "step0" / "rank1"
    for file in other.glob("*.json"):
        file.write_text(file.read_text().replace(".out_proj.", ".output_projection.").replace(".head.", ".top."))
    monkeypatch.chdir(tmp_path)
    sides = ["-tp", "mindspore", "-gp", "pytorch", "--csv", "-lm"]
    main(["compare", *sides, "-o", "bare"])
    names = sorted(file.stem.rpartition("_")[0] for file in Path("bare").glob("layer_mapping_*.yaml"))
    assert names == ["layer_mapping", "layer_mapping_rank1"]
    reports = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("report: ", "also written: "))]
    assert all(line.startswith(("report: bare/", "also written: bare/")) for line in reports)


def test_what_the_user_says_of_a_module_counts_before_what_was_found() -> None:
    target, golden = dump_of("mindspore", encoder(1)), dump_of("pytorch", renamed(encoder(1)))
    rules = align_modules(target, golden).rules
    cell = {"layers.0.norm1.LayerNorm": "blocks.0.post_norm.LayerNorm"}
    pairs = destinations(modules_of(target), modules_of(golden), Mappings(cell=cell, automatic=rules))
    assert pairs["layers.0.norm1", "LayerNorm"].module == ("blocks.0.post_norm", "LayerNorm")
    assert ("layers.0.norm2", "LayerNorm") not in pairs
    assert pairs["head", "Dense"].how == "automatic"


def test_equal_names_need_no_mapping_and_the_file_that_says_so_is_no_mistake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alignment = align_modules(dump_of("mindspore", encoder()), dump_of("pytorch", encoder()))
    file = tmp_path / "layer.yaml"
    file.write_text(alignment.text(), encoding="utf-8")
    assert "have the same names on both sides: no mapping is needed" in alignment.text()
    assert load_mappings(layer=file).layer == {}
    assert not caplog.records
