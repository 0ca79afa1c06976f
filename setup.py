"""Metadata lives in pyproject.toml; here only what it cannot say: where packages come from, the README of an index."""

import re
from pathlib import Path

from setuptools import find_packages, setup

OWN = find_packages(include=["msprobe_ms", "msprobe_ms.*"], exclude=["msprobe_ms.compat.msprobe*"])
#: Installed at the top level, so that scripts written for msprobe import it by that name.
ALIAS = find_packages("msprobe_ms/compat", include=["msprobe", "msprobe.*"])
#: The same for MetaX's tool and for msit. Where their packages are installed beside, Python takes those before modules.
MODULES = ["maca_tools", "msit_llm"]

#: Where the repository is published, without a slash at its end; "" while it is not. The README's links follow it.
REPOSITORY = ""
URLS = {"Source": REPOSITORY, "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md"} if REPOSITORY else {}
#: ``[text](target)`` of a page in the repository, and pictures.
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def for_an_index(text: str) -> str:
    """The README where none of the repository's files lie beside it: links lead to the repository, or are text."""

    def target(link: re.Match[str]) -> str:
        picture, shown, path = link.groups()
        if not REPOSITORY:
            return "" if picture else shown
        return f"{picture}[{shown}]({REPOSITORY}/{'raw' if picture else 'blob'}/main/{path})"

    return _LINK.sub(target, text)


setup(
    packages=OWN + ALIAS,
    py_modules=MODULES,
    package_dir={
        "": "msprobe_ms/compat/modules",
        "msprobe": "msprobe_ms/compat/msprobe",
        "msprobe_ms": "msprobe_ms",
    },
    exclude_package_data={"msprobe_ms.compat": ["modules/*"]},
    options={"egg_info": {"egg_base": "."}},
    long_description=for_an_index(Path(__file__).with_name("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    project_urls=URLS,
)
