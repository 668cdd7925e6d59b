"""How the public functions are written as ONNX, one file per family.

A function gets a rule in the file of its family. `b` is the `Builder` (`tinytorch/fx/onnx/builder.py`), tensors are
`Value`s, which have operators, and ONNX's operators as methods:

    elementwise(torch.hypot)(lambda b, x, y: (x * x + y * y).Sqrt())  # operands have the dtype of the result
    rule(torch.take)(lambda b, x, index: x.flat().Gather(index.cast(dtypes.int64), axis=0))

`b.out` is the dtype and shape of the result; what ONNX cannot express raises `UnsupportedCall`. The samples of the
function test the rule: `python -m pytest tests/fx/onnx -k hypot`. An op that has the name of an operator, as `exp` has,
needs no rule; functions without one that consist of others are followed.

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
