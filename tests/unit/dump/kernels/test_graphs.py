"""What a compiled graph says of its kernels beyond their names."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.dump.kernels.graphs import Graph, read_graph
from msprobe_ms.dump.kernels.scope_path import cell_of

LINES = """\
subgraph @kernel_graph0() {
  %0(equiv_1) = Load(%para1_a.weight, UMonad[U]) cnode_primal_attrs: {unique_id: "10"}
      # Fullname with scope: (Default/Load-op0)
  %1(equiv_2_x) = PrimFunc_MatMul(%para0_x, %0, Bool(0)) cnode_primal_attrs: {unique_id: "20"}
      # Fullname with scope: (Default/a-Dense/MatMul-op0)
      # In file /user/net.py:10~12, 4~19/    def construct(self, x):/
      # In file /user/net.py:11, 8~30/        y = self.a(x) / 2/
      # In file /lib/basic.py:7, 8~30/        return self.matmul(x, self.weight)/
  %2(equiv_3) = PrimFunc_ReLU(%1) cnode_primal_attrs: {unique_id: "30"}
      # Fullname with scope: (Default/layers-CellList/0-Block/act-ReLU/ReLU-op0)
  %3(equiv_4) = Load(%para2_layers.1.fc.weight, UMonad[U]) {}
      # Fullname with scope: (Default/Load-op1)
  %4(equiv_5) = PrimFunc_MatMul(%2, %3) cnode_primal_attrs: {unique_id: "40"}
      # Fullname with scope: (Default/layers-CellList/1-Block/fc-Dense/MatMul-op0)
  %5(equiv_6) = PrimFunc_ReLU(%4) cnode_primal_attrs: {unique_id: "30"}
      # Fullname with scope: (Default/layers-CellList/0-Block/act-ReLU/ReLU-op1)
  %6(equiv_7) = PrimFunc_ReluGrad(%9, %5) cnode_primal_attrs: {forward_node_name: "R", forward_unique_id: "30"}
      # Fullname with scope: (Gradients/Default/layers-CellList/0-Block/act-ReLU/Grad_ReLU/ReluGrad-op0)
  %7(equiv_8) = PrimFunc_MatMul(%6, %para0_x) cnode_primal_attrs: {forward_unique_id: "40"}
      # Fullname with scope: (Gradients/Default/a-Dense/Grad_MatMul/MatMul-op0)
  %8(equiv_9) = PrimFunc_Mul(%7, %7) {}
      # Fullname with scope: (Expand/_Square/Mul-op0)
  %9(equiv_10) = PrimFunc_AddN(%8, %7) {}
      # Fullname with scope: (Gradients/Default/a-Dense/AddN-op0)
"""


def cell(name: str) -> tuple[str, str] | None:
    scope = Graph(LINES.splitlines(keepends=True)).scope(name)
    assert scope is not None
    return cell_of(scope)


def test_a_gradient_belongs_where_its_forward_kernel_does() -> None:
    assert cell("Gradients/Default/a-Dense/Grad_MatMul/MatMul-op0") == ("layers.1.fc", "Dense")
    # Of two forward kernels of one identity it is the one whose result it reads.
    name = "Gradients/Default/layers-CellList/0-Block/act-ReLU/Grad_ReLU/ReluGrad-op0"
    assert cell(name) == cell(name.replace("/", "_")) == ("layers.1.act", "ReLU")
    assert cell("Gradients/Default/a-Dense/AddN-op0") is None


def test_an_operator_named_after_the_first_of_its_kind_stands_beside_what_it_reads() -> None:
    assert cell("Default/layers-CellList/0-Block/act-ReLU/ReLU-op0") == ("layers.0.act", "ReLU")
    assert cell("Default/layers-CellList/0-Block/act-ReLU/ReLU-op1") == ("layers.1.act", "ReLU")


def test_what_a_gradient_was_expanded_into_is_one() -> None:
    scope = Graph(LINES.splitlines()).scope("Expand/_Square/Mul-op0")
    assert scope is not None and scope.backward and scope.components == ()


def test_graphs_that_point_at_each_other() -> None:
    text = """  %0(x) = PrimFunc_ReLU(%para0_x) cnode_primal_attrs: {{unique_id: "{}", forward_unique_id: "{}"}}
      # Fullname with scope: (Gradients/Default/a-ReLU/Grad_ReLU/ReluGrad-op0)"""
    graphs = [Graph(text.format(*ids).splitlines()) for ids in ((1, 2), (2, 1))]
    for graph in graphs:
        graph.prepare({}, lambda: graphs)
    assert [graph.scope("Gradients/Default/a-ReLU/Grad_ReLU/ReluGrad-op0") is None for graph in graphs] == [
        False,
        False,
    ]


def test_numbers_that_cannot_be_those_of_the_graph_are_not_trusted() -> None:
    graph = Graph(LINES.splitlines())
    names = ("Default_layers-CellList_0-Block_act-ReLU_ReLU-op1", "Default_layers-CellList_1-Block_fc-Dense_MatMul-op0")
    graph.prepare({name: place for place, name in enumerate(names)}, tuple)
    # The activation would have run before what it reads: its number is another's.
    assert graph.scope(names[0]) is None and graph.call_site(names[0]) == ()
    assert graph.scope(names[1]) is not None


def test_source_lines_innermost_first() -> None:
    assert Graph(LINES.splitlines()).call_site("Default_a-Dense_MatMul-op0") == (
        "File /lib/basic.py, line 7, in construct, \n return self.matmul(x, self.weight)",
        "File /user/net.py, line 11, in construct, \n y = self.a(x) / 2",
    )


def test_a_graph_that_is_not_there_or_does_not_know(tmp_path: Path) -> None:
    assert read_graph(tmp_path / "rank_0" / "Net" / "0" / "0") is None
    assert Graph(LINES.splitlines()).scope("Default/Other-op0") is None
    assert Graph([]).call_site("Default/Other-op0") == ()


PIECES = [*LINES.splitlines(), "", "subgraph @two() {", "  %1(x) = PrimFunc_Sub(%1, %2) {}"]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_graphs_with_lines_missing_or_repeated_are_read(lines: list[str]) -> None:
    graph = Graph(lines, {"layers": "CellList"})
    for line in lines:
        if "Fullname" in line:
            name = line.partition("(")[2].rstrip(")")
            graph.call_site(name)
            if (scope := graph.scope(name)) is not None:
                cell_of(scope)
