"""What people ask when they look, each answered by the keyboard alone; of steps and ranks in test_kinds.py."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open, Opened
from tests.browser.synthetic import transformer

ORIGIN = "Cell.layers.2.norm1.LayerNorm.forward.0"


@pytest.fixture
def page(opened: Open) -> Opened:
    page = opened(transformer(6, 2, backward=True, nan_at=5).html())
    page.until("document.querySelector('.figures tbody')")
    return page


def tab(page: Opened, name: str) -> str:
    """Open a tab of the node by its keys; return what it shows."""
    page.page.locator('[role="tab"][aria-selected="true"]').focus()
    while page.text('[role="tab"][aria-selected="true"]') != name:
        page.press("ArrowRight")
        page.page.wait_for_timeout(20)
    page.until("!document.querySelector('.tabpanel').innerText.includes('decoding')")
    page.page.evaluate("document.activeElement.blur()")
    return page.text(".tabpanel")


def chosen_row(page: Opened) -> str:
    return page.text('#grid [aria-selected="true"]')


def test_where_it_begins(page: Opened) -> None:
    page.press("ArrowRight", "ArrowRight", "O")
    page.settled()
    assert page.node == ORIGIN
    assert page.page.locator('#grid [aria-selected="true"]').is_visible()
    assert "inputs and weights agree" in page.text("#verdict")
    assert "origin" in chosen_row(page)


def test_whether_it_is_its_own_doing(page: Opened) -> None:
    assert float(page.text(".flow:nth-child(2) b")) > 10 * float(page.text(".flow:nth-child(1) b"))
    assert page.text(".adders tbody tr:first-child").split("\n")[0].endswith("∞") or "layers" in page.text(".adders")
    page.press("ArrowRight")
    page.settled()
    assert ORIGIN in page.text(".why")


def test_how_much_is_allowed(page: Opened) -> None:
    page.press("t")
    titles = page.text("#grid .head")
    assert "Error ratio" in titles and "Tolerance" in titles
    assert "tolerance" in page.text(".metrics")


def test_forward_or_backward(page: Opened) -> None:
    page.press("o")
    page.settled()
    assert page.node == "Cell.layers.1.up.Dense.parameters_grad.0"
    page.press("ArrowLeft")
    for _ in range(40):
        if "backward" in page.text(".node .bar"):
            break
        page.press("ArrowLeft")
        page.page.wait_for_timeout(10)
    page.settled()
    assert page.text('.model [aria-label="Direction"] [aria-pressed="true"]') == "backward"


def test_which_elements(page: Opened) -> None:
    shown = tab(page, "elements")
    assert "furthest apart" in shown and "[0, 0, 0]" in shown and "index 0 of axis 1" in shown
    assert page.page.locator('.elements canvas[role="img"]').count() == 3
    page.press("ArrowRight")
    page.settled()
    assert '"task": "tensor"' in page.text(".tabpanel")


def test_whether_they_are_paired_right(page: Opened) -> None:
    page.press("m")
    page.page.locator('[role="tree"]').focus()
    page.press("Home", "ArrowDown")
    page.settled()
    assert "no counterpart" in page.text('[role="treeitem"][aria-selected="true"]')
    page.press("ArrowDown", "ArrowDown")
    page.settled()
    line = page.text('[role="treeitem"][aria-selected="true"]')
    assert "layers.0" in line and "blocks.0" in line and "layer" in line
    page.press("ArrowRight")
    page.settled()
    assert page.page.locator('[role="treeitem"][aria-selected="true"][aria-expanded="true"]').count() == 1
    page.press("ArrowRight")
    page.settled()
    assert "norm1" in page.text('[role="treeitem"][aria-selected="true"]')
    assert "1 call of the target" in page.text(".unmatched-strip")


def test_a_pair_by_hand_becomes_a_layer_mapping(page: Opened, opened: Open) -> None:
    page.press("m")
    page.settled()
    page.page.locator("text=pair target…").press("Enter")
    page.press("ArrowRight", "ArrowRight")
    page.settled()
    page.page.locator("text=with golden…").press("Enter")
    assert page.page.locator("button", has_text="copy as layer mapping").get_attribute("title") == (
        "EncoderLayer:\n  norm1: self_attention.key\n"
    )


def test_where_nan_begins_and_spreads(page: Opened) -> None:
    page.press("Home", "n")
    page.settled()
    assert "nan" in page.text(".figures tbody.selected") and "layers.5" in page.node
    page.press("n")
    page.settled()
    assert "↳" in chosen_row(page)
    # What takes in infinity and gives it out adds nothing.
    assert "adds ×1" in page.text(".flows") and "NaN, ∞" in page.text(".legend")


def test_which_line_of_the_code(page: Opened) -> None:
    shown = tab(page, "stack")
    assert "net_mindspore.py:49 in construct" in shown and "net_pytorch.py:49 in forward" in shown
    assert page.page.locator(".stacks .unequal").count() == 2
    assert page.page.locator(".stacks .equal").count() == 1


def test_whether_all_was_equal_to_begin_with(page: Opened) -> None:
    page.until("document.querySelector('.before').innerText.includes('dtypes')")
    told = page.text(".before")
    assert "parameters agree" in told and "inputs agree" in told and "dtypes agree" in told


def test_what_it_comes_from_and_where_it_goes(page: Opened) -> None:
    page.press("]")
    page.settled()
    assert page.node == "Cell.layers.2.attention.q_proj.Dense.forward.0"
    page.press("[")
    page.settled()
    assert page.node == ORIGIN
    assert "Cell.layers.2.attention.q_proj" in tab(page, "neighbours")


def test_what_to_send(page: Opened, opened: Open) -> None:
    page.press("ArrowRight", "+", "+")
    page.settled()
    link = page.page.url
    assert "#node=Cell.layers.2.attention.q_proj" in link and "x=" in link
    other = opened(page.path.read_text(), fragment="#" + link.partition("#")[2])
    assert other.node == page.node
    assert other.text(".plot .bar .muted") == page.text(".plot .bar .muted")
    assert "--node" in (page.press("O"), page.settled(), page.text(".origin-box .command"))[-1]


def test_the_table_filters_sorts_selects_and_copies(page: Opened) -> None:
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.press("/")
    page.page.keyboard.type("norm1 output")
    page.settled()
    assert page.text('.table .bar [role="status"]').startswith("12 of ")
    page.press("Escape", "t", "End", "Enter")
    page.settled()
    assert "norm1" in page.node and "backward" in page.node
    page.press("Control+c")
    page.page.wait_for_timeout(100)
    copied = page.page.evaluate("navigator.clipboard.readText()").split("\t")
    assert copied[4] == f"{page.node}.output.0" and len(copied) == 17
    page.page.locator("#filter").focus()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("/norm1.*output/")
    page.settled()
    assert page.text('.table .bar [role="status"]').startswith("12 of ")
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("/(a+)+/")
    page.settled()
    assert "refused" in page.text(".table .note")


def test_columns_sort(page: Opened) -> None:
    page.page.locator("#grid .head button", has_text="Error ratio").press("Enter")
    page.settled()
    rows = page.page.locator("#grid .body .row .number:nth-child(2)").all_inner_texts()
    numbers = [float("inf") if text == "∞" else float(text.replace("\u202f", "")) for text in rows[:8]]
    assert numbers == sorted(numbers, reverse=True)
    assert page.page.locator('[aria-sort="descending"]').inner_text().startswith("Error ratio")


def test_help_shows_the_keys_and_gives_the_focus_back(page: Opened) -> None:
    page.press("t")
    page.settled()
    page.press("?")
    assert "next origin" in page.text("dialog") and "up to 1 is normal" in page.text("dialog")
    page.press("Escape")
    page.settled()
    assert page.page.locator("dialog").count() == 0
    assert page.page.evaluate("document.activeElement.id") == "grid"


def test_a_key_turns_to_the_next_view_of_the_node(page: Opened) -> None:
    page.press("v", "v", "v")
    page.settled()
    assert page.text('[role="tab"][aria-selected="true"]') == "stack" and "construct" in page.text(".tabpanel")


def test_a_view_that_lies_below_the_window_is_brought_into_it(opened: Open) -> None:
    page = opened(transformer(6, 2).html(), viewport={"width": 1000, "height": 600})
    page.press("v")
    page.settled()
    assert page.page.locator(".tabpanel").bounding_box()["y"] < 320


def test_single_letters_can_be_switched_off(page: Opened) -> None:
    page.press("?")
    page.page.locator("dialog input").focus()
    page.press("Space", "Escape", "o")
    page.settled()
    assert page.node == ORIGIN


@pytest.mark.parametrize(
    "fragment", ["#node=%zz", "#node=__proto__", "#x=9-2", "#garbage", "#node=Cell.none", "#q=%E0%A4"]
)
def test_an_address_that_means_nothing_is_ignored_with_a_note(opened: Open, fragment: str) -> None:
    page = opened(transformer().html(), fragment=fragment)
    assert page.node == ORIGIN
    assert "address" in page.text("#app > .note")


def test_a_link_followed_in_the_open_page(page: Opened) -> None:
    page.page.evaluate("location.hash = '#node=Cell.embedding.Embedding.forward.0&tab=raw'")
    page.settled()
    assert page.node == "Cell.embedding.Embedding.forward.0"
    assert '"paired_by": "layer"' in page.text(".tabpanel")
