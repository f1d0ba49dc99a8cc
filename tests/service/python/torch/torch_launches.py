"""For tests of what operators launch: a daemon, and a driver that takes launches and reads no memory. Tensors
lie on the CPU. Import torch_found first."""

import contextlib
import functools
import re
import unittest
from unittest import mock

import cubind.torch as operators
import running
import torch
from cubind.torch import (
    _call,
    _dispatch,
    _linear_cross_entropy,
    _masked_attention,
    _model_attention,
    _operator,
)

_CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


def on_gpu(name, *inputs):
    """What the operator cubind::NAME does on a GPU, with tensors of the CPU."""
    return getattr(torch.ops.cubind, name).default.redispatch(_CUDA, *inputs)


class _Graph(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        namespace, _, name = str(target).partition(".")
        if namespace == "cubind":
            return on_gpu(name.removesuffix(".default"), *args, **kwargs)
        return super().call_function(target, args, kwargs)


def graph_on_gpu(graph, _):
    """For torch.compile: a backend whose graphs call cubind's operators as on a GPU."""
    return _Graph(graph).run


def left_to_torch(why):
    """How many calls of attention the report counts as not cubind's for the reason."""
    found = re.search(rf"not cubind's (\d+) \({re.escape(str(why))}\)", operators.report())
    return int(found[1]) if found else 0


def kernel(name):
    """What cubind.torch knows of a kernel."""
    return next(one for one in _operator.operators() if one.name == name)


@contextlib.contextmanager
def as_if_on_gpu():
    """Meanwhile cubind.torch takes tensors of the CPU for tensors in GPU memory."""
    with (
        mock.patch.object(_call, "are_plain", lambda tensors: True),
        mock.patch.object(_dispatch, "are_plain", lambda tensors: True),
    ):
        yield


@contextlib.contextmanager
def directly():
    """Meanwhile a call fails that goes from the tensors to the launch by the dispatcher or by Python."""
    longer = {"side_effect": AssertionError("the longer way")}
    with (
        mock.patch.object(_dispatch.Dispatched, "__call__", **longer),
        mock.patch.object(_operator.Operator, "available", **longer),
    ):
        yield


@contextlib.contextmanager
def attention_by_formula():
    """Meanwhile the layers of `transformers` that are replaced compute by torch's functions. A mock that
    counts their calls, with the flags of the kernel: those of packed sequences are more."""
    ops, counted = torch.ops.cubind, mock.Mock()

    def masked_call(causal, left, right, soft_cap):
        def call(_, q, k, v, scale):
            counted(causal, left, right, soft_cap)
            return ops.attention(q, k, v, causal, left, right, soft_cap, scale)[0]

        return call

    def attend(q, k, v, is_causal, scale, enable_gqa):
        assert enable_gqa
        return masked_call(is_causal, 0, 0, 0)(None, q, k, v, q.shape[-1] ** -0.5 if scale is None else scale)

    def attend_packed(q, k, v, given):
        counted(*given[4:-1])
        return ops.packed_attention(q, k, v, *given)[0]

    with (
        mock.patch.object(_model_attention, "attend", attend),
        mock.patch.object(_masked_attention, "masked_call", masked_call),
        mock.patch.object(_masked_attention, "attend_packed", attend_packed),
    ):
        yield counted


def logits_in(size):
    """Meanwhile linear_cross_entropy() computes logits for rows of so many bytes at once."""
    return mock.patch.object(_linear_cross_entropy, "_LOGITS_BYTES", size)


# One for all tests of a file: it compiles each kernel once.
@functools.cache
def _daemon():
    daemon = running.Daemon()
    unittest.addModuleCleanup(daemon.__exit__)
    return daemon


class OnFakeDriver(unittest.TestCase):
    def setUp(self):
        operators.strict()
        self.addCleanup(operators.strict, False)
        self.daemon = _daemon()
        self.client = self.other_client()
        operators.use(self.client)
        operators.step()  # forgets the answers of another client

    def other_client(self):
        """Another client of the same daemon."""
        client = self.daemon.connect()
        self.addCleanup(client.close)
        return client

    def launches_of(self, call, parameters):
        """What `call` returns, and its launches, with the first `parameters` of each: no launch may have
        fewer."""
        self.driver = running.FakeDriver(parameters)
        before = len(self.driver.launches())
        result = call()
        return result, self.driver.launches()[before:]
