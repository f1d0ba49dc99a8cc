"""Attention of packed sequences: operands, what the outputs should be, and torch's ways to compute it."""

import ctypes
import itertools

import torch
from attention import BACKENDS, SCALE, capped, seen, weights_of
from operations import TYPES
from products import Draw, guarded
from torch.nn.attention import sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.attention.varlen import varlen_attn

KEPT = 58982  # of 65536 weights
NOTHING = ctypes.c_void_p(0)


def problem(sequences, HQ, HKV, D, T="bf16", **flags):
    """`sequences`: (queries, keys, gap)."""
    first_is_gap = bool(flags.get("GAPS")) and sequences[0][:2] == (0, 0) and sequences[0][2] > 0
    sides = [sum(s[side] + s[2] for s in sequences) for side in (0, 1)]
    sizes = {"N": len(sequences) - first_is_gap, "HQ": HQ, "HKV": HKV, "SQ": sides[0], "SK": sides[1], "D": D}
    return {**sizes, "T": T, **flags}


def offsets_of(sequences, side, count):
    """(bounds, lengths) of one side's `count` sequences."""
    bounds, at = [], 0
    for sequence in sequences:
        bounds.append(at)
        at += sequence[side] + sequence[2]
    return [*bounds[-count:], at], [s[side] for s in sequences][-count:]


def on_gpu(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device="cuda")


def kept(seed, heads, number, queries, keys):
    """Dropout's mask [heads, queries, keys] of a sequence (dropout.cuh)."""
    mask32 = 0xFFFFFFFF
    heads = torch.arange(heads, device="cuda")[:, None, None]
    queries = torch.arange(queries, device="cuda")[None, :, None]
    keys = torch.arange(keys, device="cuda")[None, None]
    shape = torch.broadcast_shapes(heads.shape, queries.shape, keys.shape)
    counter = [queries // 16 * 32 + queries % 8 * 4 + keys % 8 // 2, keys // 16, heads, heads * 0 + number]
    counter = [one.expand(shape).contiguous() for one in counter]
    key = [seed & mask32, seed >> 32]
    for _ in range(10):
        products = [multiply_32(counter[0], 0xD2511F53), multiply_32(counter[2], 0xCD9E8D57)]
        counter = [
            products[1][0] ^ counter[1] ^ key[0],
            products[1][1],
            products[0][0] ^ counter[3] ^ key[1],
            products[0][1],
        ]
        key = [(key[0] + 0x9E3779B9) & mask32, (key[1] + 0xBB67AE85) & mask32]
    words = torch.stack(counter)
    word = (queries // 8 % 2 + keys // 8 % 2 * 2).expand(shape)
    chosen = words.gather(0, word[None])[0]
    return (chosen >> (keys % 2 * 16)) & 0xFFFF < KEPT


def multiply_32(a, b):
    """The upper and lower half of products of 32 bits, in int64."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    carried = high + (low >> 16)
    return carried >> 16, ((carried & 0xFFFF) << 16) | (low & 0xFFFF)


class Forward:
    """Operands of one problem, and what its outputs should be."""

    name = "flash_attention_packed_forward"
    products = 2

    def __init__(self, p, sequences, seed, rows=False):
        """rows: Q, K and V are [rows, heads, D] in memory."""
        self.problem, self.sequences, self.rows = p, sequences, rows
        self.dtype = TYPES[p["T"]]
        normal = Draw(seed, self.dtype)
        self.seed = seed * 0x123456789 + 7
        self.bounds = [offsets_of(sequences, side, p["N"]) for side in (0, 1)]
        self.inputs = {
            "q": self.heads(normal, "HQ", "SQ"),
            "k": self.heads(normal, "HKV", "SK"),
            "v": self.heads(normal, "HKV", "SK"),
        }
        self.outputs = {}
        self.inputs.update(self.more_inputs(normal))
        self.outputs = self.make_outputs()
        self.buffers = {**self.inputs, **self.outputs, **self.tables()}
        strides = [p[heads] * p["D"] if rows else 0 for heads in ("HQ", "HKV", "HKV")]
        self.scalars = dict(zip(("q_row", "k_row", "v_row"), strides), scale=SCALE)

    def heads(self, normal, heads, rows):
        """[heads, rows, D], as it lies in memory."""
        p = self.problem
        if self.rows:
            return normal(p[rows], p[heads], p["D"]).transpose(0, 1)
        return normal(p[heads], p[rows], p["D"])

    def flat(self, heads):
        """In the order of memory."""
        return (heads.transpose(0, 1) if self.rows else heads).flatten()

    def rows_of(self, name, values, rows, like):
        """Of a tensor of all sequences these rows, in the shape of another one."""
        p = self.problem
        if values.dim() == 3:
            part = values[:, rows]
        elif name == "lse":
            part = values.view(p["HQ"], p["SQ"])[:, rows]
        else:
            part = values.view(p["SQ"], -1)[rows]
        return part.reshape(like.shape)

    def tables(self):
        p = self.problem
        (q_bounds, q_lengths), (k_bounds, k_lengths) = self.bounds
        gaps, cross = p.get("GAPS"), p.get("CROSS")
        return {
            "q_bounds": on_gpu(q_bounds),
            "k_bounds": on_gpu(k_bounds) if cross else NOTHING,
            "q_lengths": on_gpu(q_lengths) if gaps else NOTHING,
            "k_lengths": on_gpu(k_lengths) if gaps and cross else NOTHING,
            "dropout": on_gpu([self.seed, KEPT], torch.int64) if p.get("DROPOUT") else NOTHING,
        }

    def more_inputs(self, normal):
        return {}

    def make_outputs(self):
        count = self.inputs["q"].numel()
        return {"o": guarded(count, self.dtype), "lse": guarded(count // self.problem["D"], torch.float32)}

    def each(self, dtype):
        """Of each sequence the places of its queries and keys, Q, K and V, the scores, -infinity where
        they are not seen, their derivatives, and what dropout multiplies weights with."""
        p = self.problem
        group = p["HQ"] // p["HKV"]
        (q_bounds, q_lengths), (k_bounds, k_lengths) = self.bounds
        for number, (at, n, key_at, m) in enumerate(zip(q_bounds, q_lengths, k_bounds, k_lengths)):
            slices = slice(at, at + n), slice(key_at, key_at + m)
            q = self.inputs["q"][:, slices[0]].to(dtype)
            k, v = (self.inputs[x][:, slices[1]].to(dtype).repeat_interleave(group, 0) for x in ("k", "v"))
            scores, derivatives = capped((q @ k.mT) * SCALE, p)
            query, key = torch.arange(n, device="cuda")[:, None], torch.arange(m, device="cuda")[None]
            scores.masked_fill_(~seen(query, key, m - n, p), float("-inf"))
            factor = 1.0
            if p.get("DROPOUT"):
                factor = kept(self.seed, p["HQ"], number, n, m).to(dtype) * (65536 / KEPT)
            yield *slices, q, k, v, scores, derivatives, factor

    def truth(self, dtype=torch.float64):
        p = self.problem
        o = torch.zeros(p["HQ"], p["SQ"], p["D"], device="cuda", dtype=self.dtype)
        lse = torch.full((p["HQ"], p["SQ"]), float("-inf"), device="cuda")
        for queries, _, _, _, v, scores, _, factor in self.each(dtype):
            if scores.shape[-1]:
                o[:, queries] = ((weights_of(scores) * factor) @ v).to(self.dtype)
                lse[:, queries] = torch.logsumexp(scores, -1).float()
        return {"o": self.flat(o), "lse": lse.flatten()}

    def flops(self):
        """Of the pairs that see each other."""
        p = self.problem
        pairs = sum(
            q * k - (q * (q - 1) // 2 if p.get("CAUSAL") and q <= k else 0) for q, k, _ in self.sequences
        )
        return self.products * 2 * p["HQ"] * p["D"] * pairs


class Backward(Forward):
    """The same of the backward pass, whose O and lse are those of a forward pass."""

    name = "flash_attention_packed_backward"
    products = 5

    def more_inputs(self, normal):
        return {"d_o": self.heads(normal, "HQ", "SQ"), **self.saved()}

    def saved(self):
        return super().truth(torch.float32)

    def make_outputs(self):
        return {f"d{name}": guarded(self.inputs[name].numel(), self.dtype) for name in ("q", "k", "v")}

    def truth(self, dtype=torch.float64):
        p = self.problem
        shape = (p["SQ"], p["HQ"], p["D"]) if self.rows else (p["HQ"], p["SQ"], p["D"])
        o = self.inputs["o"].view(shape)
        o = o.transpose(0, 1) if self.rows else o
        result = {name: torch.zeros_like(self.inputs[name[1]]) for name in self.outputs}
        for queries, keys, q, k, v, scores, derivatives, factor in self.each(dtype):
            if not scores.numel():
                continue
            weights, d_o = weights_of(scores), self.inputs["d_o"][:, queries].to(dtype)
            delta = (o[:, queries].to(dtype) * d_o).sum(-1, keepdim=True)
            slopes = weights * ((d_o @ v.mT) * factor - delta) * derivatives

            def shared(per_head):
                return per_head.view(p["HKV"], -1, *per_head.shape[1:]).sum(1)

            result["dq"][:, queries] = (slopes @ k * SCALE).to(self.dtype)
            result["dk"][:, keys] = (shared(slopes.mT @ q) * SCALE).to(self.dtype)
            result["dv"][:, keys] = shared((weights * factor).mT @ d_o).to(self.dtype)
        return {name: self.flat(value) for name, value in result.items()}


PASSES = {"forward": Forward, "backward": Backward}


def competitors(operands):
    """Functions that make a call of each."""
    p, backward = operands.problem, isinstance(operands, Backward)
    lengths = [q for q, _, _ in operands.sequences]
    longest = max(lengths)
    rows = [one.transpose(0, 1) for one in (operands.inputs[n] for n in ("q", "k", "v"))]  # [rows, heads, D]
    bounds, _ = operands.bounds[0]

    def with_gradient(function, *inputs):
        """The call of either pass."""
        if not backward:
            return lambda: function(*inputs)
        inputs = [one.detach().clone().requires_grad_() for one in inputs]
        with torch.enable_grad():
            out = function(*inputs)
        slope = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, inputs, slope, retain_graph=True)

    def packed():
        return [torch.cat([one[b : b + n] for b, n in zip(bounds, lengths)]) for one in rows]

    def varlen():
        ends = on_gpu([0, *itertools.accumulate(lengths)])
        packed_rows = packed()
        try:
            varlen_attn(*packed_rows, ends, ends, longest, longest, is_causal=True, scale=SCALE)
            more = {"is_causal": True, "scale": SCALE}
        except TypeError:
            more = {"window_size": (-1, 0)}
        return with_gradient(
            lambda q, k, v: varlen_attn(q, k, v, ends, ends, longest, longest, **more), *packed_rows
        )

    def flex():
        number = torch.repeat_interleave(torch.arange(len(lengths), device="cuda"), on_gpu(lengths))

        def document(b, h, q, k):
            return (number[q] == number[k]) & (q >= k)

        inputs = [one.transpose(0, 1)[None] for one in packed()]
        mask = create_block_mask(document, None, None, len(number), len(number), device="cuda")
        compiled = torch.compile(flex_attention, dynamic=False)
        return with_gradient(
            lambda q, k, v: compiled(q, k, v, block_mask=mask, scale=SCALE, enable_gqa=p["HQ"] != p["HKV"]),
            *inputs,
        )

    def padded(backend):
        batch = []
        for one in rows:
            to = one.new_zeros(len(lengths), longest, *one.shape[1:])
            for row, b, n in zip(to, bounds, lengths):
                row[:n] = one[b : b + n]
            batch.append(to.transpose(1, 2))

        def call(q, k, v):
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=True, scale=SCALE, enable_gqa=p["HQ"] != p["HKV"]
                )

        return with_gradient(call, *batch)

    makes = {"varlen_attn": varlen}
    if not p.get("GAPS") and p["D"] <= 128:  # gaps are nothing to it, it computes the same again
        makes["flex_attention"] = flex
    makes |= {f"{name} padded": lambda backend=backend: padded(backend) for name, backend in BACKENDS.items()}
    return makes
