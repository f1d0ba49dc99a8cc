"""The questions for a product's choices: everything that they may depend on."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from typing import Any

import torch
from torch._inductor.virtualized import V

from .._question import Question, make_question

_DEPTH = 8  # users of a product's users that may be fused with it
_DEPTH_BEFORE = 3  # inputs of a product's inputs that may be
_MOST_NODES = 64


def is_for_gpu(inputs: Any) -> bool:
    return bool(inputs.device().type == "cuda" and torch.version.hip is None)


def what(inputs: Any, op_name: str) -> str:
    """A product for a reader: "addmm 768x4096x512 bf16"."""
    shapes = " by ".join("x".join(map(str, shape)) for shape in inputs.shapes_hinted())
    return f"{op_name} {shapes} {str(inputs.out_dtype()).removeprefix('torch.')}"


def candidate_text(candidate: Any) -> str:
    """What distinguishes a candidate from all others of its question: the template with its source, and the
    template's parameters."""
    template = candidate.template
    parameters = json.dumps(candidate.params.to_kwargs(), sort_keys=True, default=_text)
    return f"{template.uid} {getattr(template, 'src_hash', None)} {parameters}"


def question_of(found: list[Any], inputs: Any, op_name: str) -> Question:
    """Everything that the choice may depend on, as canonical JSON. The order of the candidates counts. Raises
    FailedPreconditionError where only this process could ask it."""
    candidates = [candidate_text(each) for each in found]
    node = V.graph.current_node
    told = {
        "op": op_name,
        "inputs": _inputs(inputs),
        "out_dtype": str(inputs.out_dtype()),
        "scalars": getattr(inputs, "_scalars", {}),
        "candidates": candidates,
        "around": [] if node is None else described(node),
        "settings": _settings(),
    }
    return asked(told, candidates, what(inputs, op_name), inputs.device().index)


def padding_question(key: str) -> Question:
    """Whether a product's inputs are padded. key: Inductor's own of what that depends on."""
    told = {"padding": key, "options": torch._inductor.config.post_grad_fusion_options}
    index = torch.cuda.current_device()
    return asked(told, ["plain", "padded"], f"padding of {key}"[:128], index)


def asked(told: dict[str, Any], candidates: list[str], what: str, index: int | None) -> Question:
    """told: what the choice depends on besides the GPU of that number and the versions. Raises
    FailedPreconditionError as make_question()."""
    told |= {"format": "cubind.inductor/1", "device": _device_text(index), "versions": _versions()}
    text = json.dumps(told, sort_keys=True, default=_text)
    return make_question(text, candidates, what, " ".join(_versions()), index or 0)


def _inputs(inputs: Any) -> list[Any]:
    told = zip(
        inputs.nodes(),
        inputs.dtypes(),
        inputs.shapes_hinted(),
        inputs.shapes_symbolic(),
        inputs.strides_hinted(),
    )
    return [
        {
            "dtype": str(dtype),
            "size": list(shape),
            "is_dynamic": [not _is_number(size) for size in symbolic],
            "stride": list(stride),
            "layout": [type(node.get_layout()).__name__, str(node.get_layout().offset)],
        }
        for node, dtype, shape, symbolic, stride in told
    ]


def _is_number(size: Any) -> bool:
    return isinstance(size, int) or bool(getattr(size, "is_number", False))


def _text(value: Any) -> Any:
    """Of settings and parameters that JSON has no form for."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)


def _settings() -> dict[str, Any]:
    """As Inductor's own key of a graph has them."""
    settings = torch._inductor.config.save_config_portable(ignore_private_configs=False)
    settings.pop("inductor_choices_class", None)
    products = torch.backends.cuda.matmul
    return {
        "inductor": settings,
        "precision": torch.get_float32_matmul_precision(),
        "reduced": [
            str(products.allow_fp16_reduced_precision_reduction),
            str(products.allow_bf16_reduced_precision_reduction),
            str(products.allow_fp16_accumulation),
        ],
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _device_text(index: int | None) -> list[Any]:
    """What makes GPUs the same for a choice."""
    if not torch.cuda.is_available():
        return ["cpu"]
    gpu = torch.cuda.get_device_properties(index if index is not None else torch.cuda.current_device())
    return [gpu.name, gpu.major, gpu.minor, gpu.multi_processor_count, gpu.L2_cache_size]


def _versions() -> list[str]:
    """Of all that makes and times the code."""
    try:
        triton = importlib.import_module("triton").__version__
    except ImportError:
        triton = None
    libraries = [torch.version.cuda, triton]
    return [str(each) for each in (torch.__version__, torch.version.git_version, *libraries)]


# ---- What the graph computes around a product, with which Inductor may fuse it ----


def described(node: Any) -> list[Any]:
    """The node, its inputs, and what is computed of its result. The names of nodes are not in it, nor what
    the graph gives besides."""
    nodes = _near(node)
    numbers = {each: number for number, each in enumerate(nodes)}
    return [
        [
            [str(each.target), *_dimensions(each)] if each.op == "call_function" else each.op,
            [numbers.get(before, -1) for before in each.all_input_nodes] if each.op != "output" else [],
            [_value(value) for value in _values(each.meta.get("val"))] if each.op != "output" else [],
        ]
        for each in nodes
    ]


def _near(node: Any) -> list[Any]:
    """Breadth first, in the graph's order."""
    order = {each: number for number, each in enumerate(node.graph.nodes)}
    found, last = [node], [node]
    for _ in range(_DEPTH_BEFORE):
        last = list(dict.fromkeys(before for each in last for before in each.all_input_nodes))
        found += [before for before in last if before not in found]
    last = [node]
    for _ in range(_DEPTH):
        users = sorted({user for each in last for user in each.users}, key=order.__getitem__)
        last = [user for user in users if user not in found]
        found += last
    return found[:_MOST_NODES]


def _dimensions(node: Any) -> list[Any]:
    """Those that it permutes or reduces, which the sizes of its result need not tell."""
    return [
        list(value)
        for value in node.args
        if isinstance(value, (list, tuple)) and all(isinstance(each, int) for each in value)
    ]


def _values(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _value(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    sizes, strides = (
        "x".join("dynamic" if isinstance(size, torch.SymInt) else str(size) for size in each)
        for each in (value.shape, value.stride())
    )
    return f"{value.dtype} {sizes} {strides}"
