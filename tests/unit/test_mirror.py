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
accuracy: checked error_data options overflow
accuracy/execution: check companion in_workers messages recorded roles run runnable server sides single_call
accuracy/online: checker checker_process driver
accuracy/proof: call prove source statistical
accuracy/receiving: host judge settings
arrays: changes dtypes npy torch_file torch_pickle
bisect: decide
cli: bisect dump_files environment gradients llm non_finite run view weights
cli/comparison: compare kernels merge_result options tensor_files
comparison/api: compared notebook result
comparison/kernels: compare first_nonfinite table
comparison/many: summary
comparison/measuring: tolerances
comparison: model settings
comparison/node: lookup
comparison/origin/causes: small_excess
comparison/origin: evidence nodes protocols wrong_at_first
comparison/page: calls choice content figures rows verdict
comparison/pairing/automatic: fused layer_names layer_rules outline scores
comparison/pairing: entries fused_tensors matches modules
comparison/reporting: advice_texts advisor csv_table facts
comparison/reporting/profiles: base latest maca v110 wording
compat: maca msit msit_selection neighbour torch_provider
compat/modules: maca_tools msit_llm
compat/msprobe/mindspore/common: utils
config: fields model reload scope values vocabulary without_effect
.: convert maca mindspore msit pytorch tensor_file_report
doctor: examine probe
dump: columns model
dump/kernels: entries index kernel_files launches reduce
dump/opened: calls
dump/writing: export
environment: collect report
frameworks: api_calls base compiled_call dropout framework_runner graph_observer kernel_dump msadapter
    msadapter_api_runner optimizers repeating seeding torch_modules training
frameworks/gradients: graph
frameworks/interface: apis gradients graphs kernels modules process tensors
frameworks/mindspore: api_runner arrays autograd callbacks cell_hooks device_statistics dropout framework jit kernels
    modes msadapter_training optimizers repeating tensor_dump tensor_dump_files tensor_dump_names training
frameworks/mindspore/graphs: callbacks compilation marking optimizer_taps runs seeds source
frameworks/pytorch: acl_dump api_runner arrays autograd device_statistics dropout framework genuine modes repeating
    training
frameworks/pytorch/mindspore_twins: common convolution creation elementwise indexing linear_algebra losses ordering
    primitives reductions registry scattering shapes special_functions
gradients: read report
page: filtered
recording: debugger dynamic_step guarded_actions kernel_recorder modes parts_of_a_step recorder saved_values
    sent_steps step step_recorder updates
recording/entry_points: auto context_manager every_python model_calls script
recording/entry_points/startup: sitecustomize
recording/graphs: device_kernels graph_recorder graph_step jit_kernel_recorder jit_kernels kernel_step
recording/hooks: api_list apis communication compiled custom_apis early_imports layers losses modules named_modules
    operators optimizers
recording/monitoring: gradient_files gradient_probe monitor
recording/output: overflow step_dump tensor_writer values
recording/perturbation: files fixing gradients perturbations recorder repetition report selection step
recording/selection: filters unused_settings why_empty
remote: beside certificates folder_layout items links receiver sender sending streams tls
support: files log workers
tokens: measure report sources
weights: compare fused mindspore_file model numpy_archive open safetensors torch_checkpoint
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
