"""`torch.nn.functional`.

Where its functions are written, which is where they are to be looked for and added:

| module | what |
|---|---|
| `layers` | bilinear forms, embeddings and labels, dropout, normalisation |
| `activations` | activations, softmax |
| `losses` | losses, distances |
| `padding` | borders: `pad` |
| `pooling` | maxima and averages of windows, and maxima put back |
| `resampling` | resizing and warping: `interpolate`, `grid_sample`, `affine_grid` |
| `unlike` | those of `torch` that have the name, but not the signature, of one here |
| `ops` | what needs nothing but its op: `linear`, `gelu`, convolutions, attention, `pixel_shuffle` |

The functions of these modules see to arguments (in place or not, deprecated ones, shapes, dtypes) and hand on to
`ops`; some are composed of Tensor operations.
"""

from typing import TYPE_CHECKING

from tinytorch.nn.functional import activation, layers, loss, padding, pooling, resampling  # noqa: F401
from tinytorch.ops import copies as _copies  # noqa: F401
from tinytorch.ops import register as _register
from tinytorch.ops.linalg import matrices as _matrices  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.nn import attention as _attention  # noqa: F401
from tinytorch.ops.nn import conv as _conv  # noqa: F401
from tinytorch.ops.nn import linear as _linear  # noqa: F401

if TYPE_CHECKING:
    from tinytorch.nn.functional.activation import celu as celu
    from tinytorch.nn.functional.activation import celu_ as celu_
    from tinytorch.nn.functional.activation import elu as elu
    from tinytorch.nn.functional.activation import elu_ as elu_
    from tinytorch.nn.functional.activation import glu as glu
    from tinytorch.nn.functional.activation import gumbel_softmax as gumbel_softmax
    from tinytorch.nn.functional.activation import hardsigmoid as hardsigmoid
    from tinytorch.nn.functional.activation import hardswish as hardswish
    from tinytorch.nn.functional.activation import hardtanh as hardtanh
    from tinytorch.nn.functional.activation import hardtanh_ as hardtanh_
    from tinytorch.nn.functional.activation import leaky_relu as leaky_relu
    from tinytorch.nn.functional.activation import leaky_relu_ as leaky_relu_
    from tinytorch.nn.functional.activation import log_softmax as log_softmax
    from tinytorch.nn.functional.activation import mish as mish
    from tinytorch.nn.functional.activation import relu as relu
    from tinytorch.nn.functional.activation import relu6 as relu6
    from tinytorch.nn.functional.activation import relu_ as relu_
    from tinytorch.nn.functional.activation import rrelu as rrelu
    from tinytorch.nn.functional.activation import rrelu_ as rrelu_
    from tinytorch.nn.functional.activation import selu as selu
    from tinytorch.nn.functional.activation import selu_ as selu_
    from tinytorch.nn.functional.activation import sigmoid as sigmoid
    from tinytorch.nn.functional.activation import silu as silu
    from tinytorch.nn.functional.activation import softmax as softmax
    from tinytorch.nn.functional.activation import softmin as softmin
    from tinytorch.nn.functional.activation import softsign as softsign
    from tinytorch.nn.functional.activation import tanh as tanh
    from tinytorch.nn.functional.activation import tanhshrink as tanhshrink
    from tinytorch.nn.functional.activation import threshold as threshold
    from tinytorch.nn.functional.activation import threshold_ as threshold_
    from tinytorch.nn.functional.layers import alpha_dropout as alpha_dropout
    from tinytorch.nn.functional.layers import batch_norm as batch_norm
    from tinytorch.nn.functional.layers import bilinear as bilinear
    from tinytorch.nn.functional.layers import dropout as dropout
    from tinytorch.nn.functional.layers import dropout1d as dropout1d
    from tinytorch.nn.functional.layers import dropout2d as dropout2d
    from tinytorch.nn.functional.layers import dropout3d as dropout3d
    from tinytorch.nn.functional.layers import embedding as embedding
    from tinytorch.nn.functional.layers import embedding_bag as embedding_bag
    from tinytorch.nn.functional.layers import feature_alpha_dropout as feature_alpha_dropout
    from tinytorch.nn.functional.layers import group_norm as group_norm
    from tinytorch.nn.functional.layers import instance_norm as instance_norm
    from tinytorch.nn.functional.layers import layer_norm as layer_norm
    from tinytorch.nn.functional.layers import local_response_norm as local_response_norm
    from tinytorch.nn.functional.layers import normalize as normalize
    from tinytorch.nn.functional.layers import one_hot as one_hot
    from tinytorch.nn.functional.layers import rms_norm as rms_norm
    from tinytorch.nn.functional.loss import binary_cross_entropy as binary_cross_entropy
    from tinytorch.nn.functional.loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
    from tinytorch.nn.functional.loss import cosine_embedding_loss as cosine_embedding_loss
    from tinytorch.nn.functional.loss import cosine_similarity as cosine_similarity
    from tinytorch.nn.functional.loss import cross_entropy as cross_entropy
    from tinytorch.nn.functional.loss import ctc_loss as ctc_loss
    from tinytorch.nn.functional.loss import gaussian_nll_loss as gaussian_nll_loss
    from tinytorch.nn.functional.loss import hinge_embedding_loss as hinge_embedding_loss
    from tinytorch.nn.functional.loss import huber_loss as huber_loss
    from tinytorch.nn.functional.loss import kl_div as kl_div
    from tinytorch.nn.functional.loss import l1_loss as l1_loss
    from tinytorch.nn.functional.loss import margin_ranking_loss as margin_ranking_loss
    from tinytorch.nn.functional.loss import mse_loss as mse_loss
    from tinytorch.nn.functional.loss import multi_margin_loss as multi_margin_loss
    from tinytorch.nn.functional.loss import multilabel_margin_loss as multilabel_margin_loss
    from tinytorch.nn.functional.loss import multilabel_soft_margin_loss as multilabel_soft_margin_loss
    from tinytorch.nn.functional.loss import nll_loss as nll_loss
    from tinytorch.nn.functional.loss import pairwise_distance as pairwise_distance
    from tinytorch.nn.functional.loss import poisson_nll_loss as poisson_nll_loss
    from tinytorch.nn.functional.loss import smooth_l1_loss as smooth_l1_loss
    from tinytorch.nn.functional.loss import soft_margin_loss as soft_margin_loss
    from tinytorch.nn.functional.loss import triplet_margin_loss as triplet_margin_loss
    from tinytorch.nn.functional.loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
    from tinytorch.nn.functional.padding import pad as pad
    from tinytorch.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
    from tinytorch.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
    from tinytorch.nn.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
    from tinytorch.nn.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
    from tinytorch.nn.functional.pooling import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
    from tinytorch.nn.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
    from tinytorch.nn.functional.pooling import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
    from tinytorch.nn.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
    from tinytorch.nn.functional.pooling import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
    from tinytorch.nn.functional.pooling import avg_pool1d as avg_pool1d
    from tinytorch.nn.functional.pooling import avg_pool2d as avg_pool2d
    from tinytorch.nn.functional.pooling import avg_pool3d as avg_pool3d
    from tinytorch.nn.functional.pooling import fractional_max_pool2d as fractional_max_pool2d
    from tinytorch.nn.functional.pooling import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
    from tinytorch.nn.functional.pooling import fractional_max_pool3d as fractional_max_pool3d
    from tinytorch.nn.functional.pooling import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
    from tinytorch.nn.functional.pooling import lp_pool1d as lp_pool1d
    from tinytorch.nn.functional.pooling import lp_pool2d as lp_pool2d
    from tinytorch.nn.functional.pooling import lp_pool3d as lp_pool3d
    from tinytorch.nn.functional.pooling import max_pool1d as max_pool1d
    from tinytorch.nn.functional.pooling import max_pool1d_with_indices as max_pool1d_with_indices
    from tinytorch.nn.functional.pooling import max_pool2d as max_pool2d
    from tinytorch.nn.functional.pooling import max_pool2d_with_indices as max_pool2d_with_indices
    from tinytorch.nn.functional.pooling import max_pool3d as max_pool3d
    from tinytorch.nn.functional.pooling import max_pool3d_with_indices as max_pool3d_with_indices
    from tinytorch.nn.functional.pooling import max_unpool1d as max_unpool1d
    from tinytorch.nn.functional.pooling import max_unpool2d as max_unpool2d
    from tinytorch.nn.functional.pooling import max_unpool3d as max_unpool3d
    from tinytorch.nn.functional.resampling import affine_grid as affine_grid
    from tinytorch.nn.functional.resampling import grid_sample as grid_sample
    from tinytorch.nn.functional.resampling import interpolate as interpolate
    from tinytorch.nn.functional.resampling import upsample as upsample
    from tinytorch.nn.functional.resampling import upsample_bilinear as upsample_bilinear
    from tinytorch.nn.functional.resampling import upsample_nearest as upsample_nearest
    from tinytorch.ops.copies import channel_shuffle as channel_shuffle
    from tinytorch.ops.copies import channel_shuffle as native_channel_shuffle
    from tinytorch.ops.copies import pixel_shuffle as pixel_shuffle
    from tinytorch.ops.copies import pixel_unshuffle as pixel_unshuffle
    from tinytorch.ops.linalg.matrices import pdist as pdist
    from tinytorch.ops.nn.activation import gelu as gelu
    from tinytorch.ops.nn.activation import hardshrink as hardshrink
    from tinytorch.ops.nn.activation import logsigmoid as logsigmoid
    from tinytorch.ops.nn.activation import prelu as prelu
    from tinytorch.ops.nn.activation import softplus as softplus
    from tinytorch.ops.nn.activation import softshrink as softshrink
    from tinytorch.ops.nn.attention import multi_head_attention_forward as multi_head_attention_forward
    from tinytorch.ops.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
    from tinytorch.ops.nn.conv import conv1d as conv1d
    from tinytorch.ops.nn.conv import conv2d as conv2d
    from tinytorch.ops.nn.conv import conv3d as conv3d
    from tinytorch.ops.nn.conv import conv_tbc as conv_tbc
    from tinytorch.ops.nn.conv import conv_transpose1d as conv_transpose1d
    from tinytorch.ops.nn.conv import conv_transpose2d as conv_transpose2d
    from tinytorch.ops.nn.conv import conv_transpose3d as conv_transpose3d
    from tinytorch.ops.nn.conv import fold as fold
    from tinytorch.ops.nn.conv import unfold as unfold
    from tinytorch.ops.nn.linear import linear as linear

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu",
    "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish",
    "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

__getattr__, __dir__ = _register.namespace(__name__)
