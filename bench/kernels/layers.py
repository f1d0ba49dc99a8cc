"""What the kernels around products and attention compute: problems, operands, the truth in float64, and
torch's way.

A layer's `buffers` are those of its kernel spec, by name. Outputs have products.GUARD elements behind them
that must stay as they are. The truth of outputs that are too large for float64 is of their last rows alone.
"""

import math

import torch
from operations import TYPES
from products import Draw, activated, guarded

aten, functional = torch.ops.aten, torch.nn.functional
IGNORED = -100


def checked(rows, elements):
    """Of so many rows."""
    return slice(None) if rows * elements < 1 << 31 else slice(-1000, None)


class Layer:
    @property
    def scalars(self):
        return {}

    def torch_call(self):
        return self.formula

    def torch_compiled_call(self):
        torch._dynamo.reset()
        return torch.compile(self.formula, dynamic=False)


class VectorAdd(Layer):
    """c = a + b."""

    def __init__(self, p, seed):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        self.a, self.b = normal(p["N"]), normal(p["N"])
        self.outputs = {"c": guarded(p["N"], dtype)}
        self.buffers = {"a": self.a, "b": self.b, **self.outputs}

    def truth(self):
        return {"c": self.a.double() + self.b.double()}

    def formula(self):
        return (self.a + self.b,)


def activation(values, number):
    if number == 3:
        return functional.gelu(values, approximate="tanh")
    return activated(values, number)


class ActivationForward(Layer):
    def __init__(self, p, seed):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        self.problem = p
        self.x, self.up = normal(p["N"], stddev=2), normal(p["GATE"] * p["N"])
        self.outputs = {"y": guarded(p["N"], dtype)}
        self.buffers = {"x": self.x, "up": self.up, **self.outputs}

    def result(self, x, up):
        y = activation(x, self.problem["ACTIVATION"])
        return y * up if self.problem["GATE"] else y

    def truth(self):
        part = checked(self.problem["N"], 1)
        return {"y": self.result(self.x[part].double(), self.up[part].double())}

    def formula(self):
        return (self.result(self.x, self.up),)


class ActivationBackward(ActivationForward):
    def __init__(self, p, seed):
        super().__init__(p, seed)
        dtype = TYPES[p["T"]]
        self.dy = Draw(seed + 1, dtype)(p["N"])
        self.outputs = {"dx": guarded(p["N"], dtype), "dup": guarded(p["GATE"] * p["N"], dtype)}
        self.buffers = {"x": self.x, "up": self.up, "dy": self.dy, **self.outputs}

    def gradients(self, x, up, dy):
        number, gate = self.problem["ACTIVATION"], self.problem["GATE"]
        slope = dy * up if gate else dy
        if number == 2:
            slope = aten.silu_backward(slope, x)
        elif number:
            slope = aten.gelu_backward(slope, x, approximate="tanh" if number == 3 else "none")
        return (slope, dy * activation(x, number)) if gate else (slope, up)

    def truth(self):
        part = checked(self.problem["N"], 1)
        found = self.gradients(self.x[part].double(), self.up[part].double(), self.dy[part].double())
        return dict(zip(self.outputs, found, strict=True))

    def formula(self):
        return self.gradients(self.x, self.up, self.dy)


class Rotary(Layer):
    def __init__(self, p, seed):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        self.problem = p
        self.q, self.k = (normal(p["N"], p[heads], p["D"]) for heads in ("HQ", "HKV"))
        angles = normal(p["C"], p["D"]).float()
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)
        self.rows = torch.arange(p["N"], device="cuda") % p["C"]
        self.outputs = {"q_out": guarded(self.q.numel(), dtype), "k_out": guarded(self.k.numel(), dtype)}
        self.buffers = {"q": self.q, "k": self.k, "cos": self.cos, "sin": self.sin, **self.outputs}

    def turned(self, x, cos, sin, rows):
        cos, sin = (table[rows].unsqueeze(1) for table in (cos, sin))
        if self.problem["INVERSE"]:
            low, high = (x * sin).chunk(2, -1)
            return x * cos + torch.cat((high, -low), -1)
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat((-high, low), -1) * sin

    def truth(self):
        cos, sin = self.cos.double(), self.sin.double()
        part = checked(self.problem["N"], self.problem["HQ"] * self.problem["D"])
        return {
            f"{name}_out": self.turned(x[part].double(), cos, sin, self.rows[part])
            for name, x in (("q", self.q), ("k", self.k))
        }

    def formula(self):
        return tuple(self.turned(x, self.cos, self.sin, self.rows) for x in (self.q, self.k))


class CrossEntropy(Layer):
    """Loss and gradient, a tenth of the rows without either. special: NaN in a row, and in others -infinity,
    with which models mask classes."""

    @property
    def scalars(self):
        return {"ignored": IGNORED}

    def __init__(self, p, seed, special=False):
        dtype = TYPES[p["T"]]
        normal = Draw(seed, dtype)
        N, D = p["N"], p["D"]
        self.checked = checked(N, D)
        self.x = normal(N, D, stddev=2)
        if special and D > 1:
            self.x[1:2, D // 2], self.x[2:, 0] = math.nan, -math.inf
        self.target = torch.randint(D, (N,), generator=normal.generator, device="cuda")
        self.target[::10] = IGNORED
        self.scale = torch.full((1,), 1 / max(1, N - (N + 9) // 10), device="cuda")
        self.outputs = {"loss": guarded(N, torch.float32), "dx": guarded(N * D, dtype)}
        self.buffers = {"x": self.x, "target": self.target, "scale": self.scale, **self.outputs}

    def truth(self):
        parts = [self.results(x.double(), target) for x, target in self.parts(self.x, self.target)]
        return dict(zip(self.outputs, (torch.cat(part) for part in zip(*parts, strict=True)), strict=True))

    def parts(self, *of_rows):
        """What is checked, by parts: in float64 a vocabulary takes much memory."""
        return zip(*(values[self.checked].split(512) for values in of_rows), strict=True)

    def results(self, x, target):
        kept = (target != IGNORED).unsqueeze(1)
        chosen = target.clamp(min=0).unsqueeze(1)
        total = x.logsumexp(1, keepdim=True)
        loss = torch.where(kept, total - x.gather(1, chosen), 0).squeeze(1)
        hit = torch.arange(x.shape[1], device="cuda") == chosen
        return loss, torch.where(kept, ((x - total).exp() - hit.to(x.dtype)) * self.scale, 0)

    def formula(self):
        loss, dx = self.results(self.x.float(), self.target)
        return loss, dx.to(self.x.dtype)

    def torch_call(self):
        """What a model's loss and its backward pass call."""

        def call():
            with torch.enable_grad():
                x = self.x.requires_grad_()
                loss = functional.cross_entropy(x, self.target, ignore_index=IGNORED, reduction="none")
                (dx,) = torch.autograd.grad(loss, x, self.scale.to(loss.dtype).expand_as(loss))
            self.x.requires_grad_(False)
            return loss.detach(), dx

        return call


class CrossEntropyForward(CrossEntropy):
    """Loss and logsumexp."""

    def __init__(self, p, seed, special=False):
        super().__init__(p, seed, special)
        self.outputs = {name: guarded(p["N"], torch.float32) for name in ("loss", "lse")}
        self.buffers = {"x": self.x, "target": self.target, **self.outputs}

    def results(self, x, target):
        kept, total = target != IGNORED, x.logsumexp(1)
        chosen = x.gather(1, target.clamp(min=0).unsqueeze(1)).squeeze(1)
        return torch.where(kept, total - chosen, 0), torch.where(kept, total, 0)

    def formula(self):
        return self.results(self.x.float(), self.target)

    def torch_call(self):
        return lambda: functional.cross_entropy(self.x, self.target, ignore_index=IGNORED, reduction="none")


class CrossEntropyBackward(CrossEntropy):
    """The gradient, of another factor for each row."""

    def __init__(self, p, seed, special=False):
        super().__init__(p, seed, special)
        self.dloss = torch.rand(p["N"], device="cuda") + 0.5
        self.lse = torch.cat([x.double().logsumexp(1) for x in self.x.split(512)]).float()
        self.outputs = {"dx": self.outputs["dx"]}
        self.buffers = {
            "x": self.x,
            "target": self.target,
            "lse": self.lse,
            "dloss": self.dloss,
            **self.outputs,
        }

    def truth(self):
        parts = self.parts(self.x, self.target, self.lse, self.dloss)
        return {"dx": torch.cat([self.gradient(x.double(), *others) for x, *others in parts])}

    def gradient(self, x, target, lse, dloss):
        hit = torch.arange(x.shape[1], device="cuda") == target.unsqueeze(1)
        slopes = ((x - lse.unsqueeze(1)).exp() - hit.to(x.dtype)) * dloss.unsqueeze(1)
        return torch.where((target != IGNORED).unsqueeze(1), slopes, 0)

    def formula(self):
        return (self.gradient(self.x.float(), self.target, self.lse, self.dloss).to(self.x.dtype),)

    def torch_call(self):
        """What torch's backward pass calls, without the logarithms of softmax that it reads."""
        logarithms, kept = functional.log_softmax(self.x, 1), self.target.clamp(min=0)

        def call():
            slope = torch.zeros_like(logarithms)
            slope.scatter_(1, kept.unsqueeze(1), -self.dloss.to(slope.dtype).unsqueeze(1))
            return (aten._log_softmax_backward_data(slope, logarithms, 1, self.x.dtype),)

        return call


LAYERS = {
    "vector_add": VectorAdd,
    "activation_forward": ActivationForward,
    "activation_backward": ActivationBackward,
    "rotary": Rotary,
    "cross_entropy": CrossEntropy,
    "cross_entropy_forward": CrossEntropyForward,
    "cross_entropy_backward": CrossEntropyBackward,
}
