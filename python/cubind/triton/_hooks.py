"""What the pre_hook of a configuration does before each run, found out without tensors' contents."""

from __future__ import annotations

import copy
import sys
from typing import Any

from ._own import StaysOwnError

_FILLS = ("aten::fill_.Scalar", "aten::zero_")


def cleared_by(configuration: Any, named: dict[str, Any]) -> frozenset[str]:
    """The tensors that the configuration's pre_hook sets to zero. named: what Triton would call it with.

    A hook may also set the block_shape of tensor descriptors: Triton calls it before each launch. Raises
    StaysOwnError for one that does anything else with tensors.
    """
    if configuration.pre_hook is None:
        return frozenset()
    torch = sys.modules.get("torch")
    if torch is None or any(
        hasattr(each, "data_ptr") and not isinstance(each, torch.Tensor) for each in named.values()
    ):
        raise StaysOwnError("has configurations with a pre_hook, for tensors that are not torch's")
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    stand_ins = {name: _without_contents(value, torch) for name, value in named.items()}
    by_id = {id(each): name for name, each in stand_ins.items() if isinstance(each, torch.Tensor)}
    devices = [getattr(torch.Tensor, each).__get__ for each in ("device", "is_cpu", "is_cuda", "is_meta")]
    cleared: set[str] = set()

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = by_id.get(id(args[0])) if args else None
            if name is None or func.name() not in _FILLS:
                raise StaysOwnError(f"has a pre_hook that calls {func}")
            if args[1:] not in ((), (0,)):
                raise StaysOwnError(f"has a pre_hook that fills {name} with {args[1]}")
            cleared.add(name)
            return args[0]

    class Refusing(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.data_ptr:  # as a launch of another kernel does
                raise StaysOwnError("has a pre_hook that uses the addresses of tensors")
            if func in devices:
                raise StaysOwnError("has a pre_hook that asks tensors for their device")
            return func(*args, **(kwargs or {}))

    try:
        with Noting(), Refusing():
            configuration.pre_hook(stand_ins)
    except StaysOwnError:
        raise
    except Exception as error:
        raise StaysOwnError(f"has a pre_hook that fails without tensors: {error}"[:256]) from None
    return frozenset(cleared)


def _without_contents(value: Any, torch: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if hasattr(value, "block_shape"):
        value = copy.copy(value)
        value.base = _without_contents(value.base, torch)
        value.block_shape = list(value.block_shape)
    return value
