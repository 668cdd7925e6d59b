"""`quantize_dynamic`: a model with linear layers whose weights have 8 or 16 bits."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from tinytorch.kernels import dtypes
from tinytorch.nn.modules.linear import Linear as FloatLinear
from tinytorch.nn.modules.module import Module
from tinytorch.nn.modules.rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell
from tinytorch.nn.modules.sparse import Embedding, EmbeddingBag
from tinytorch.nn.quantization.dynamic import Linear
from tinytorch.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "default_dynamic_qconfig", "float16_dynamic_qconfig", "get_default_dynamic_quant_module_mappings",
    "per_channel_dynamic_qconfig", "quantize_dynamic",
]  # fmt: skip


class _WeightConfig(NamedTuple):
    """How a layer is quantized: in PyTorch a `QConfig`, whose observers tinytorch lacks.

    Attributes:
        dtype: of the weight: `torch.qint8` (with a scale for each row), `torch.float16` or `torch.bfloat16`.
    """

    dtype: Any


#: int8, with a scale for each row. (PyTorch's default has one scale for the whole weight.)
default_dynamic_qconfig = _WeightConfig(dtypes.qint8)
per_channel_dynamic_qconfig = _WeightConfig(dtypes.qint8)
float16_dynamic_qconfig = _WeightConfig(dtypes.float16)

#: Layers that PyTorch quantizes, too.
_OTHERS = (GRU, LSTM, GRUCell, LSTMCell, RNNCell, Embedding, EmbeddingBag)


def get_default_dynamic_quant_module_mappings() -> dict[type, type]:
    """Return by class of layer the class that `quantize_dynamic` replaces it by: `torch.nn.Linear` alone.

    Example:
        >>> torch.ao.quantization.get_default_dynamic_quant_module_mappings()[torch.nn.Linear]
        <class 'tinytorch.nn.quantization.dynamic.Linear'>
    """
    return {FloatLinear: Linear}


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: Any = dtypes.qint8,
    mapping: dict[type, Any] | None = None,
    inplace: bool = False,
) -> Module:
    """Return a copy of a model for inference, whose linear layers have weights of 8 or 16 bits.

    A `torch.nn.Linear` inside of `model` becomes a `torch.ao.nn.quantized.dynamic.Linear`, whose docstring says how it
    computes. Subclasses of Linear stay as they are. A model of large layers then computes few rows several times as
    fast, since the time is that of reading the weights; see docs/performance.md.

    PyTorch quantizes recurrent layers as well if `qconfig_spec` is None; here they stay in float32.

    Args:
        model: the model. If it is a Linear itself, it stays as it is.
        qconfig_spec: what to quantize: a set of classes of modules and of names of submodules, or a dict from them to
            `default_dynamic_qconfig`, `per_channel_dynamic_qconfig`, `float16_dynamic_qconfig`, or None, which leaves a
            layer as it is. What is said of a module holds for the modules in it, too, and the attribute `qconfig` of a
            module comes before. None quantizes all linear layers.
        dtype: of the weights, unless `qconfig_spec` is a dict: `torch.qint8`, `torch.float16` or `torch.bfloat16`
            (which PyTorch lacks here).
        mapping: by class of layer, the class that replaces it, whose method `from_float` makes one; None for that of
            `get_default_dynamic_quant_module_mappings`.
        inplace: whether to replace the layers in `model` itself.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
        >>> torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.float16)
        Sequential(
          (0): DynamicQuantizedLinear(in_features=8, out_features=4, dtype=torch.float16)
          (1): ReLU()
        )
    """
    if qconfig_spec is None:
        if dtype not in (dtypes.qint8, dtypes.float16, dtypes.bfloat16):
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
            )
        qconfig_spec = {FloatLinear}
    if isinstance(qconfig_spec, set):
        if dtype not in (dtypes.qint8, dtypes.float16, dtypes.bfloat16):
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, _WeightConfig(dtype))
    for config in qconfig_spec.values():
        if config is not None and not isinstance(config, _WeightConfig):
            raise AttributeError(
                f"{type(config).__name__!r} object has no attribute '_fields': a configuration is one of "
                "default_dynamic_qconfig, per_channel_dynamic_qconfig and float16_dynamic_qconfig"
            )
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    replaced: dict[Module, Module] = {}  # a layer in several places becomes one layer
    _replace(model, "", None, qconfig_spec, get_default_dynamic_quant_module_mappings() | (mapping or {}), replaced)
    return model


def _replace(
    module: Module, path: str, config: Any, spec: dict[Any, Any], mapping: dict[type, Any], replaced: dict[Any, Any]
) -> None:
    config = _config_of(module, path, config, spec)
    for name, child in list(module.named_children()):
        child_path = f"{path}.{name}" if path else name
        _replace(child, child_path, config, spec, mapping, replaced)
        if child not in replaced:
            replaced[child] = _replacement(child, child_path, _config_of(child, child_path, config, spec), mapping)
        module._modules[name] = replaced[child]


def _config_of(module: Module, path: str, config: Any, spec: dict[Any, Any]) -> Any:
    """Return what is said of a module: by its attribute, by its name, by its class, or of the module around it."""
    said = spec.get(path, spec.get(type_before_parametrizations(module), config))
    return getattr(module, "qconfig", said)


def _replacement(module: Module, path: str, config: Any, mapping: dict[type, Any]) -> Module:
    if config is None:
        return module
    kind = type_before_parametrizations(module)
    if kind in _OTHERS and kind not in mapping:
        raise NotImplementedError(f"quantize_dynamic: {path} is of the class {kind.__name__}: only Linear is quantized")
    if kind not in mapping:
        return module
    module.qconfig = config
    made: Module = mapping[kind].from_float(module)
    for hook in module._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in module._forward_hooks.values():
        made.register_forward_hook(hook)
    return made.eval()
