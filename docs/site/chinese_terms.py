"""Terms of a search that finds Chinese: every two neighbouring characters are one, so that no dictionary is needed."""

from __future__ import annotations

import re

_FIRST, _LAST = "\u3400", "\u9fff"
_RUN = re.compile(rf"[{_FIRST}-{_LAST}]+|[^\W{_FIRST}-{_LAST}]+")


def terms(text: str) -> list[str]:
    """Words of letters and digits as they are, a run of Chinese as its pairs of characters."""
    found: list[str] = []
    for run in _RUN.findall(text):
        is_chinese = _FIRST <= run[0] <= _LAST
        found += [run[at : at + 2] for at in range(len(run) - 1)] if is_chinese and len(run) > 1 else [run]
    return found


#: The same in JavaScript, for what is searched for. A page is found if it has all terms, but a pair across
#: two words that no page has side by side is in none: it is left out.
SPLIT_QUERY = """
var isInIndex = (term) => [Search._index.terms, Search._index.titleterms].some((terms) => Object.hasOwn(terms, term));
var splitQuery = (query) => (query.match(/[\\u3400-\\u9fff]+|[\\p{L}\\p{N}_]+/gu) || [])
  .flatMap((text) => text.match(/[\\u3400-\\u9fff]+|[^\\u3400-\\u9fff]+/g))
  .flatMap((run) => /^[\\u3400-\\u9fff]{2,}$/.test(run)
    ? Array.from({ length: run.length - 1 }, (_, at) => run.slice(at, at + 2)).filter(isInIndex) : [run]);
"""
