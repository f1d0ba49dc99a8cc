# pyright: strict
"""Every public name as a program uses it, for a type checker: types_test.py has it read by pyright, nothing
runs it."""

import cubind
import cubind.torch
import torch
from torch.nn import functional

client = cubind.connect("embedded", timeout=60)
answer: cubind.Answer = client.get("rmsnorm_forward", N=4096, D=4096, T=torch.bfloat16, on_miss="wait")
other: cubind.Answer | None = answer.for_dims(N=3)
compared: tuple[cubind.Comparison, ...] = answer.over_library
client.report_comparison(answer, cubind.Comparison("mine 1.0", 1.5, 1.4, 1.6, samples=9))
print(
    answer.configuration["MODE"],
    answer.time_us,
    answer.plan[0]["grid"],
    other,
    client.calls,
    answer.dim_names,
)
kernel: cubind.Kernel = client.kernel(
    "rmsnorm_forward", D=4096, question=cubind.Question(device="nvidia-h200")
)
x = torch.randn(4096, 4096)
bound: cubind.BoundKernel = kernel.bind(x=x, stream=0)
bound(x)
bound.launch(x=x)
results: list[cubind.TuneResult] = client.tune([{"N": 1}], kernel="rmsnorm_forward", progress=False)
print(results[0].time_us, client.status()["version"], client.wanted(top=1), client.kernels())
print(client.export_table("t.json"), client.import_table("t.json"), kernel.arguments(N=1))
try:
    client.get("x")
except cubind.CubindError as error:
    print(error.code, error.field, error.cause)
model = torch.nn.Sequential(torch.nn.RMSNorm(8))
done: cubind.torch.Replacement = cubind.torch.replace(model, dry_run=True)
done.undo()
tuned: list[cubind.TuneResult] = cubind.torch.tune(model, x, backward=False, progress=False)
y: torch.Tensor = cubind.torch.rms_norm(x, (4096,), x[0])
y = cubind.torch.layer_norm(y, [8], x, x)
y = cubind.torch.softmax(y)
y = cubind.torch.silu(x)
y = cubind.torch.gelu(x, "tanh")
y = cubind.torch.swiglu(x, x)
y = cubind.torch.geglu(x, x, approximate="tanh")
y = cubind.torch.linear(y, x)
y = cubind.torch.layer_norm_linear(cubind.torch.add_rms_norm(y, y, x[0], 1e-6)[0], x[0], x[0], x, eps=1e-6)
y = cubind.torch.weighted_sum(y, x[0])
y = cubind.torch.cross_entropy(y, x, reduction="sum") + cubind.torch.linear_cross_entropy(y, x, x)
y = cubind.torch.rotary(y, y, x, x)[0]
y = cubind.torch.scaled_dot_product_attention(y, y, y, is_causal=True)
y = cubind.torch.varlen_attention(y, y, y, x, x, max_q=8, max_k=8, is_causal=True, window_size=(4, 0))
y = cubind.torch.grouped_mm(y, y, offs=x)
y = cubind.torch.scaled_grouped_mm(
    y, y, x, functional.ScalingType.RowWise, x, functional.ScalingType.RowWise, offs=x
)
y = cubind.torch.scaled_mm(y, y, x, functional.ScalingType.TensorWise, x, functional.ScalingType.TensorWise)
cubind.torch.strict()
cubind.torch.never_slower(False)
cubind.torch.use(client)
cubind.torch.step()
loaded: bool = cubind.torch.wait(timeout=1.0)
text: str = cubind.torch.report()
print(cubind.torch.RMSNorm(8), cubind.torch.LayerNorm(8), cubind.torch.Linear(8, 8), y, loaded, text, tuned)
