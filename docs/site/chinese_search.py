"""The search of the Chinese site: its script splits what is searched for as its index was split."""

from __future__ import annotations

from chinese_terms import SPLIT_QUERY, terms
from sphinx.search.en import SearchEnglish


class ChineseSearch(SearchEnglish):
    """Chinese by pairs of characters; English words are stemmed."""

    lang = "zh"
    language_name = "English"  # the script's stemmer is called after it
    js_splitter_code = SPLIT_QUERY

    def split(self, input: str) -> list[str]:
        return terms(input)
