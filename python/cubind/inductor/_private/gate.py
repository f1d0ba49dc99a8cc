"""Whether this PyTorch has what cubind uses of it."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

# By module: names, with the parameters of functions.
_NAMES: dict[str, dict[str, str | None]] = {
    "torch._inductor.choices": {
        "InductorChoices._finalize_template_configs": "self template_choices kernel_inputs templates op_name kwarg_overrides",
        "InductorChoices.get_template_configs": "self kernel_inputs templates op_name kwarg_overrides",
    },
    "torch._inductor.kernel_template_choice": {
        "KernelTemplateChoice.__init__": "self template params extra_kwargs layout inputs",
        "KernelTemplateChoice.choice": None,
    },
    "torch._inductor.kernel_inputs": {
        "KernelInputs.shapes_hinted": "self",
        "KernelInputs.strides_hinted": "self",
        "KernelInputs.shapes_symbolic": "self",
        "KernelInputs.dtypes": "self",
        "KernelInputs.nodes": "self reorder",
        "KernelInputs.device": "self",
        "KernelInputs.out_dtype": "self",
    },
    "torch._inductor.select_algorithm": {
        "ExternKernelChoice": None,
        "get_algorithm_selector_cache": "",
        "AlgorithmSelectorCache.add_feedback_saver": "self fn",
        "AlgorithmSelectorCache.add_preprocessing_fn": "self fn",
    },
    "torch._inductor.ir": {
        "MultiTemplateBuffer.__init__": "self layout inputs choice_timings_fn unfiltered_choices allowed_prologue_inps",
        "MultiTemplateBuffer.finalize_as_triton_caller": "self caller",
        "MultiTemplateBuffer.choices": None,
        "MultiTemplateBuffer.output_plannable": None,
        "TensorBox.create": "data",
    },
    "torch._inductor.async_compile": {"AsyncCompile.triton": "self kernel_name source_code device_str"},
    "torch._inductor.fx_passes.pad_mm": {
        "get_cached_should_pad": "key",
        "is_padded_faster": "key ori_time pad_time",
    },
    "torch._inductor.runtime.autotune_cache": {
        "AutotuneCache.create": "inductor_meta filename configs_hash",
        "AutotuneCache.save": "self config time_taken_ns found_by_coordesc triton_cache_hash",
    },
    "torch._inductor.runtime.triton_heuristics": {
        "CachingAutotuner.autotune_to_one_config": "self args kwargs",
        "CachingAutotuner.bench": None,
        "CachingAutotuner.coordinate_descent_tuning": "self launcher args kwargs",
        "CachingAutotuner._precompile_config": "self cfg",
    },
    "torch._inductor.runtime.hints": {"TRITON_MAX_BLOCK": None},
    "torch._inductor.loop_body": {"LoopBody.debug_str": "self"},
    "torch._inductor.scheduler": {
        "BaseSchedulerNode.get_template_node": "self",
        "FusionResult.fuse": "should_fuse",
        "FusionResult.from_callable": "callable_fn future",
        "Scheduler._has_layout_conflict_for_template": "self multi_node",
        "Scheduler.speedup_by_fusion": "self node1 node2",
    },
    "torch._inductor.codecache": {
        "FxGraphCache._save_graph": "key compiled_graph example_inputs local remote_cache",
        "FxGraphHashDetails.__init__": "self gm example_inputs fx_kwargs inputs_to_check",
        "PyCodeCache.write": "source_code extra",
    },
    "torch._functorch._aot_autograd.autograd_cache": {"AOTAutogradCache.save": "key entry remote"},
    "torch._inductor.config": {
        "inductor_choices_class": None,
        "multi_kernel_hints": None,
        "save_config_portable": None,
    },
    "torch.compiler.config": {"cache_key_tag": None},
}


def missing() -> str:
    """What this PyTorch lacks, or has in another form; "" if nothing."""
    for module_name, names in _NAMES.items():
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            return module_name
        for path, parameters in names.items():
            if not _is_known(module, path, parameters):
                return f"{module_name}.{path}"
    return ""


def _is_known(module: Any, path: str, parameters: str | None) -> bool:
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return parameters is None or list(inspect.signature(found).parameters) == parameters.split()
