"""Metadata lives in pyproject.toml; here what it cannot say: places of packages, the extension in C, the README."""

import re
import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup

OWN = find_packages(include=["msprobe_ms", "msprobe_ms.*"], exclude=["msprobe_ms.compat.msprobe*"])
#: Installed at the top level, so that scripts written for msprobe import it by that name.
ALIAS = find_packages("msprobe_ms/compat", include=["msprobe", "msprobe.*"])
#: The same for MetaX's tool and for msit. Where their packages are installed beside, Python takes those before modules.
MODULES = ["maca_tools", "msit_llm"]

#: One wheel is for all versions of Python that have a global lock.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")

ARRAYS = "msprobe_ms/arrays"
ONE_PASS = Extension(
    "msprobe_ms.arrays._one_pass",
    [f"{ARRAYS}/one_pass.c"],
    depends=[f"{ARRAYS}/one_pass_{part}.h" for part in ("target", "rows", "text", "tensors")],
    extra_compile_args=["-O3", "-g0"],  # what a debugger reads names the folder of the build: no two would be equal
    py_limited_api=LIMITED,
    optional=True,  # without a compiler, numpy computes what it would
)


def of_dumps(folder: str, name: str) -> Extension:
    """A part in C of a folder of ``msprobe_ms/dump``: without a compiler, Python does what it would."""
    return Extension(
        f"msprobe_ms.dump.{folder}._{name}",
        [f"msprobe_ms/dump/{folder}/{name}.c"],
        depends=["msprobe_ms/dump/growing_text.h"],
        extra_compile_args=["-O2", "-g0"],
        py_limited_api=LIMITED,
        optional=True,
    )


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
    exclude_package_data={
        "msprobe_ms.compat": ["modules/*"],
        "msprobe_ms.arrays": ["*.c", "*.h"],
        "msprobe_ms.dump": ["*.h"],
        "msprobe_ms.dump.reading": ["*.c"],
        "msprobe_ms.dump.writing": ["*.c"],
    },
    ext_modules=[
        ONE_PASS,
        of_dumps("reading", "members"),
        of_dumps("writing", "records"),
        of_dumps("writing", "whole_files"),
    ],
    options={"egg_info": {"egg_base": "."}, **({"bdist_wheel": {"py_limited_api": "cp310"}} if LIMITED else {})},
    long_description=for_an_index(Path(__file__).with_name("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    project_urls=URLS,
)
