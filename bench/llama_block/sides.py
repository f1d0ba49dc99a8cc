"""What is compared: the operators of each side, and which of them are compiled."""

import dataclasses

import cubind.torch
import torch
from block import EPS, TORCH, Operators, torch_rotate, torch_swiglu
from torch.nn import functional


def cubind_rms_norm(x, weight):
    return cubind.torch.rms_norm(x, weight.shape, weight, EPS)


# The kernel reads heads that lie one after the other. Copied here, a compiler copies them as it rotates them.
def cubind_attend(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return cubind.torch.scaled_dot_product_attention(q, k, v, is_causal=True)


CUBIND = Operators(cubind_rms_norm, cubind_attend, torch_swiglu, torch_rotate, functional.linear)
CUBIND_LINEAR = dataclasses.replace(CUBIND, linear=cubind.torch.linear)


def liger_operators():
    """Liger-Kernel's Triton operators; it has no attention and no linear layer of its own. ImportError where
    it is missing."""
    import torch.distributed.tensor  # noqa: F401, PLC0415
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction  # noqa: PLC0415
    from liger_kernel.ops.rope import LigerRopeFunction  # noqa: PLC0415
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction  # noqa: PLC0415

    return dataclasses.replace(
        TORCH,
        rms_norm=lambda x, weight: LigerRMSNormFunction.apply(x, weight, EPS),
        rotate=LigerRopeFunction.apply,
        swiglu=LigerSiLUMulFunction.apply,
    )


@dataclasses.dataclass(frozen=True)
class Side:
    """One way to run the block. `fullgraph`: whether a break of the compiled graph is an error."""

    operators: Operators
    compiled: bool = False
    fullgraph: bool = True

    def block_of(self, model, backend):
        """The model's block as this side runs it."""
        if not self.compiled:
            return model.block
        return torch.compile(model.block, fullgraph=self.fullgraph, backend=backend)


def all_sides(linear):
    """(sides by their names, why others are left out). `linear`: also with cubind's products in the linear
    layers."""
    sides = {
        "torch": Side(TORCH),
        "torch_compile": Side(TORCH, compiled=True),
        "cubind": Side(CUBIND),
        "cubind_compile": Side(CUBIND, compiled=True),
    }
    if linear:
        sides["cubind_linear_compile"] = Side(CUBIND_LINEAR, compiled=True)
    if not torch.cuda.is_available():
        return sides, {"liger": "there is no GPU"}
    try:
        liger = liger_operators()
    except ImportError as error:
        return sides, {"liger": str(error)}
    sides["liger"] = Side(liger)
    sides["liger_compile"] = Side(liger, compiled=True, fullgraph=False)
    return sides, {}
