"""Metadata lives in pyproject.toml; here only the places that packages and modules come from, which it cannot say."""

from setuptools import find_packages, setup

OWN = find_packages(include=["msprobe_ms", "msprobe_ms.*"], exclude=["msprobe_ms.compat.msprobe*"])
#: Installed at the top level, so that scripts written for msprobe import it by that name.
ALIAS = find_packages("msprobe_ms/compat", include=["msprobe", "msprobe.*"])
#: The same for MetaX's tool. Where its package is installed beside, Python takes that before a module.
MODULES = ["maca_tools"]

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
)
