"""Metadata lives in pyproject.toml; here only the two places packages come from, which it cannot say."""

from setuptools import find_packages, setup

OWN = find_packages(include=["msprobe_ms", "msprobe_ms.*"], exclude=["msprobe_ms.compat.msprobe*"])
#: Installed at the top level, so that scripts written for msprobe import it by that name.
ALIAS = find_packages("msprobe_ms/compat", include=["msprobe", "msprobe.*"])

setup(packages=OWN + ALIAS, package_dir={"msprobe": "msprobe_ms/compat/msprobe"})
