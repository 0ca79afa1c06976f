"""Metadata lives in pyproject.toml; here what it cannot say: where packages come from, and the extension in C."""

import sysconfig

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
    depends=[f"{ARRAYS}/one_pass_target.h", f"{ARRAYS}/one_pass_rows.h"],
    extra_compile_args=["-O3"],
    py_limited_api=LIMITED,
    optional=True,  # without a compiler, numpy computes what it would
)

setup(
    packages=OWN + ALIAS,
    py_modules=MODULES,
    package_dir={
        "": "msprobe_ms/compat/modules",
        "msprobe": "msprobe_ms/compat/msprobe",
        "msprobe_ms": "msprobe_ms",
    },
    exclude_package_data={"msprobe_ms.compat": ["modules/*"], "msprobe_ms.arrays": ["*.c", "*.h"]},
    ext_modules=[ONE_PASS],
    options={"egg_info": {"egg_base": "."}, **({"bdist_wheel": {"py_limited_api": "cp310"}} if LIMITED else {})},
)
