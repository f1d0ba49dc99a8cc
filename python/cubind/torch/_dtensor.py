"""DTensors: an operator runs on what each rank has of them, where their placements leave each row in one
piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .._torch_access import PLAIN
from ..errors import InvalidArgumentError


def are_distributed(*tensors: Tensor | None) -> bool:
    """Whether one of them is a DTensor. Needs no import of theirs, which takes long."""
    for tensor in tensors:
        if tensor is not None and type(tensor) not in PLAIN and hasattr(tensor, "placements"):
            return True
    return False


def run_locally(
    operator: str,
    call: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    whole: int,
    parameters: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """call(*inputs, *parameters) on each rank's own, as a DTensor with the placements of the inputs.

    inputs: placed alike, on each mesh dim as Replicate() or as Shard() of a dim before the last `whole` ones.
    parameters: Replicate() on each mesh dim; their gradients are summed over the ranks. The result has the
        first sizes of the inputs, but for the last `whole` ones.

    Raises InvalidArgumentError at the argument that is placed otherwise.
    """
    from torch.distributed.tensor import DTensor, Partial, Replicate

    mesh, placements = _check_inputs(operator, inputs, whole)
    # A rank that has a share of the rows has a share of the sum that a parameter's gradient is.
    shares = [Replicate() if p.is_replicate() else Partial() for p in placements]
    local: list[Tensor] = [_dtensor(tensor).to_local() for tensor in inputs.values()]
    for name, tensor in (parameters or {}).items():
        _check_parameter(operator, name, tensor, mesh)
        # As it lies already; but its gradient is put together again.
        replicated = _dtensor(tensor).redistribute(placements=[Replicate()] * mesh.ndim)
        local.append(replicated.to_local(grad_placements=shares))
    result = call(*local).contiguous()
    rows = next(iter(inputs.values())).shape[:-whole]
    shape = torch.Size((*rows, *result.shape[len(rows) :]))
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(result, mesh, placements, run_check=False, shape=shape, stride=stride)


# What the type checker knows of a tensor's own methods does not include a DTensor's.
def _dtensor(tensor: Tensor) -> Any:
    return tensor


def _check_inputs(operator: str, inputs: Mapping[str, Tensor], whole: int) -> tuple[Any, tuple[Any, ...]]:
    from torch.distributed.tensor import Replicate, Shard

    name, first = next(iter(inputs.items()))
    mesh, placements = _placement(operator, name, first)
    for other, tensor in inputs.items():
        if _placement(operator, other, tensor) != (mesh, placements):
            cause = (
                f"placed as {_spelled(tensor)}, and {name} as {_spelled(first)}: they have to be placed alike"
            )
            raise _refused(operator, other, cause)
    rows = range(first.dim() - whole)
    for placement in placements:
        # type(): a shard of another kind has other rows than its dim says.
        if not placement.is_replicate() and not (type(placement) is Shard and placement.dim in rows):
            raise _refused(operator, name, _rows_wanted(first, rows, name, [Replicate()] * mesh.ndim))
    if len(inputs) > 1:
        _check_even(operator, inputs, mesh, placements)
    return mesh, placements


def _rows_wanted(tensor: Tensor, rows: range, name: str, replicated: list[Any]) -> str:
    allowed = " or ".join(["Replicate()", *(f"Shard({dim})" for dim in rows)])
    return (
        f"placed as {_spelled(tensor)}, but each rank needs whole rows, {allowed} on each mesh dim: "
        f"{name}.redistribute(placements={replicated}) gives them"
    )


# The heads of queries belong to certain heads of keys: a rank must have both.
def _check_even(operator: str, inputs: Mapping[str, Tensor], mesh: Any, placements: tuple[Any, ...]) -> None:
    for mesh_dim, placement in enumerate(placements):
        for name, tensor in inputs.items():
            if placement.is_shard() and tensor.shape[placement.dim] % mesh.size(mesh_dim):
                cause = f"placed as {_spelled(tensor)}, but {mesh.size(mesh_dim)} ranks do not divide its shape {list(tensor.shape)}"
                raise _refused(operator, name, cause)


def _check_parameter(operator: str, name: str, tensor: Tensor, mesh: Any) -> None:
    from torch.distributed.tensor import Replicate

    own_mesh, placements = _placement(operator, name, tensor)
    if own_mesh != mesh:
        raise _refused(operator, name, f"on {own_mesh}, but the input is on {mesh}")
    if not all(p.is_replicate() for p in placements):
        wanted = f"{name}.redistribute(placements={[Replicate()] * mesh.ndim})"
        raise _refused(
            operator, name, f"placed as {_spelled(tensor)}, but each rank needs all of it: {wanted}"
        )


def _placement(operator: str, name: str, tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
    if not are_distributed(tensor):
        cause = (
            "a plain tensor, but another argument is a DTensor: make this one too, by distribute_tensor(). The weights of a module "
            "that fully_shard() wraps are plain tensors within its forward() alone"
        )
        raise _refused(operator, name, cause)
    return _dtensor(tensor).device_mesh, tuple(_dtensor(tensor).placements)


def _spelled(tensor: Tensor) -> str:
    return str(list(_dtensor(tensor).placements))


def _refused(operator: str, name: str, cause: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{cause} (cubind.torch.{operator})", f"argument {name}")
