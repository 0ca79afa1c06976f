"""The page in Chinese: what its script says is translated, but for names, figures and words that stay."""

from __future__ import annotations

import json
import re
from pathlib import Path

from msprobe_ms.cli.main import main
from tests.browser.conftest import Open
from tests.browser.synthetic import transformer

GOLDEN = Path(__file__).parents[2] / "samples" / "golden" / "step0"
#: Words that are the same in both languages: names of figures, keys, commands and frameworks.
_STAYS = re.compile(
    r"(?<![A-Za-z])(DIVERGENT|NaN|dtype|step|rank|dump|loss|norm|max|min|mean|Max|Min|Norm|Enter|Esc|API|Cell|null|node|"
    r"msprobe(-ms)?|prove|Python|ReLU|dropout|pytorch|statistics|task|tensor|list|File|line|forward|in)(?![A-Za-z])"
)
#: What is shown, names and code left out, and what is read aloud.
_SHOWN = """() => {
    const texts = [], left = "script, style, bdi, code, pre, kbd, option[value='all']";
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        if (!walker.currentNode.parentElement.closest(left)) texts.push(walker.currentNode.data);
    }
    for (const element of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
        for (const name of ["aria-label", "title", "placeholder"]) texts.push(element.getAttribute(name) ?? "");
    }
    return texts;
}"""


def english(texts: list[str]) -> list[str]:
    """Return the texts that hold an English word of three letters or more, names with dots and options left out."""
    plain = ((text, _STAYS.sub("", re.sub(r"[!-~]*[._/=][!-~]*|--?\w+", "", text))) for text in texts)
    return [text for text, left in plain if re.search(r"[A-Za-z]{3,}", left)]


def report(folder: Path) -> str:
    """The page in Chinese of the golden sample beside itself with other results."""
    target = folder / "step0" / "rank0"
    target.mkdir(parents=True)
    content = json.loads((GOLDEN / "rank0" / "dump.json").read_text())
    for name, entry in content["data"].items():
        for output in entry.get("output", []) if ".forward." in name and "Embedding" not in name else []:
            output.update({each: output[each] * 1.3 + 0.1 for each in ("Max", "Min", "Mean", "Norm")})
    (target / "dump.json").write_text(json.dumps(content))
    main(["--lang", "zh", "compare", "-tp", str(target.parent), "-gp", str(GOLDEN), "-o", str(folder / "out")])
    return next((folder / "out").glob("*.html")).read_text("utf-8")


def test_what_the_script_says_is_in_the_language_of_the_page(opened: Open, tmp_path: Path) -> None:
    page = opened(report(tmp_path))
    page.settled()
    texts = page.page.evaluate(_SHOWN)
    assert any("执行过程中的误差" in text for text in texts)
    assert not english(texts)
    page.page.keyboard.press("?")
    page.until("document.querySelector('dialog[open]')")
    assert page.text("dialog h2") == "术语与快捷键"
    assert not english([page.text("dialog")])


def test_a_page_in_english_holds_no_texts(opened: Open) -> None:
    html = transformer().html()
    assert 'id="texts"' not in html
    page = opened(html)
    page.settled()
    assert page.text("#plot-title") == "Error along execution"
