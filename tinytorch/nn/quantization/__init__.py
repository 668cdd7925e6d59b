"""Models whose weights have 8 or 16 bits: `torch.ao.quantization.quantize_dynamic` and the layer that it makes.

| module | contents |
|---|---|
| `dynamic` | `Linear`, which users find as `torch.ao.nn.quantized.dynamic.Linear` |
| `quantize` | `quantize_dynamic` and its configurations, which are in `torch.ao.quantization` |
"""

__traced_as__ = "inline"  # by `torch.compile`
