"""As much of CuPy as a notebook and its launches need. The arrays lie in no memory."""

import contextlib
import itertools
import types

import running

_ADDRESSES = itertools.count(1)


class ndarray(running.FakeArray):  # noqa: N801  CuPy's name
    device = types.SimpleNamespace(id=0)


def asarray(array):
    return ndarray(next(_ADDRESSES) << 24, array.shape)


cuda = types.SimpleNamespace(
    Device=contextlib.nullcontext, get_current_stream=lambda: types.SimpleNamespace(ptr=0x55)
)
