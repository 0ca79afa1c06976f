"""Every module of the package has a test file of its name in the folder of its name, but for those listed here.

``python tests/unit/test_mirror.py`` prints the list as it must be now: it only shrinks, or follows names that change.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import TextWrapper

PACKAGE = Path(__file__).parents[2] / "msprobe_ms"
UNIT = Path(__file__).parent

#: Folder → modules that other files test: frameworks by tests/frameworks, others by those of what uses them.
WITHOUT = """
arrays: chunked_statistics dtypes kl_divergence narrow_floats npy_reader npy_writer torch_file torch_pickle
cli: common compare convert kernels weights
comparison/api: assertion compared compared_ranks dataframe notebook
comparison: comparable model run scale statistics tensor_identity verdict
comparison/kernels: compare first_nonfinite table
comparison/many: cluster collectives run shared_mapping summary terminal trend
comparison/measuring: deviation tolerances
comparison/node: element_text lookup producers_consumers report status
comparison/origin: drift fused_parts inheritance nodes precision reasons
comparison/origin/explanations: dropout inner_gradients relu_switching
comparison/pairing: api_names call_groups early_end entries fused_modules fused_tensors fusing group_pairs keys
    matches modules running_statistics unpaired_scopes
comparison/pairing/automatic: containers evidence fused layer_kinds layers opaque_layers outline rules
comparison/pairing/rules: data
comparison/reporting: advice_texts advisor csv_table row_columns
comparison/reporting/profiles: base latest latest_rules own_rules v110 v110_rules wording
compat/msprobe/mindspore/common: utils
compat: neighbour
config: model paths read reload selectors values vocabulary
convert: run source write
dump: columns model
dump/kernels: entries folders graphs in_memory index index_root kernel_file kernel_files launches reduce tables
    unwritten
dump/reading: entries locate tensors
dump/writing: export memory_budget records
frameworks: base gradient_graph graph_observer missing msadapter seeding torch_modules training
frameworks/mindspore: arrays autograd callbacks device_statistics framework graph_callbacks graph_compilation
    graph_source identity_nodes jit kernel_dump kernels modes random_state structures tensor_dump tensor_dump_files
    tensor_dump_names training
frameworks/pytorch: autograd device_statistics framework random_state training
.: mindspore pytorch
recording: arguments auto backward call_filter call_site calls communication context_manager debugger
    deferred_statistics dumper empty_step error_log filters kernel_recorder modes overflow recompute recorder sampling
    saved_values script step tensor_writer unused_settings values
recording/graphs: environment kernel_dumper kernel_step plain_path recorder step
recording/hooks: apis compiler_calls early_imports jit kernels modules primitives token_window wrapped
support: atomic errors gc_pause log package patching permissions regular workers
weights: compare fused mindspore_file model numpy_archive open raw report safetensors torch_checkpoint torch_state
"""


def without_a_test() -> list[str]:
    """Modules without a test file, as lines ``folder: name name``."""
    missing: dict[str, list[str]] = {}
    for module in sorted(PACKAGE.rglob("*.py")):
        folder = module.parent.relative_to(PACKAGE)
        if not module.stem.startswith("__") and not (UNIT / folder / f"test_{module.stem}.py").exists():
            missing.setdefault(str(folder), []).append(module.stem)
    wrapper = TextWrapper(width=118, subsequent_indent="    ", break_on_hyphens=False)
    return [line for folder, names in missing.items() for line in wrapper.wrap(f"{folder}: {' '.join(names)}")]


def listed(lines: list[str]) -> set[str]:
    """The modules of such lines; one that is indented goes on with the folder before."""
    modules, folder = set(), ""
    for line in lines:
        named, colon, names = line.rpartition(":")
        folder = named if colon else folder
        modules |= {f"{folder}/{name}" for name in names.split()}
    return modules


def test_every_module_has_a_test_of_its_name() -> None:
    expected = listed(WITHOUT.split("\n")[1:-1])
    found = listed(without_a_test())
    assert found - expected == set(), "modules without a test file of their name"
    assert expected - found == set(), "these have one now, or are gone: take them out of the list"


if __name__ == "__main__":
    print("\n".join(without_a_test()))
