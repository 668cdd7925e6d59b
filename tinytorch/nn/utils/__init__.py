"""Helpers around parameters: clipping, parametrization, pruning, fusion; sequences of different lengths (`rnn`)."""

# ruff: noqa: F403, F405

from tinytorch.nn.utils import parametrizations as parametrizations
from tinytorch.nn.utils import parametrize as parametrize
from tinytorch.nn.utils import prune as prune
from tinytorch.nn.utils import rnn as rnn
from tinytorch.nn.utils import stateless as stateless
from tinytorch.nn.utils.clip_grad import *
from tinytorch.nn.utils.convert_parameters import *
from tinytorch.nn.utils.fusion import *
from tinytorch.nn.utils.init import skip_init
from tinytorch.nn.utils.memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from tinytorch.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tinytorch.nn.utils.weight_norm import remove_weight_norm, weight_norm

__traced_as__ = "inline"  # by `torch.compile`

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "parametrizations",
    "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "skip_init", "spectral_norm", "stateless",
    "weight_norm", "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "get_total_norm", "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip
