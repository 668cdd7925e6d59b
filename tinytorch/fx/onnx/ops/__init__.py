"""How the public functions are written as ONNX, one file per family.

| file | functions |
|---|---|
| `elementwise` | arithmetic, comparisons, logic, transcendental functions, activations, casts |
| `shape` | views, and what puts tensors together or takes them apart |
| `create` | tensors of numbers |
| `reduce` | sums, extrema, norms, sorting, cumulative functions |
| `index` | indices and masks |
| `linear` | products of matrices, attention |
| `layers` | convolutions, pooling, normalization, embedding, resampling, losses |
| `recurrent` | LSTM, GRU and RNN |
"""

from tinytorch.fx.onnx.ops import create, elementwise, index, layers, linear, recurrent, reduce, shape

__all__ = ["create", "elementwise", "index", "layers", "linear", "recurrent", "reduce", "shape"]
