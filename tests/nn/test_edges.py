"""Less usual calls of `nn.functional` against PyTorch: results, orders in memory, names of nodes, errors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import expressions, same_as_pytorch


def outcome(torch: Any, expression: str) -> Any:
    """Return the values of an expression, with strides and the names of nodes.

    It may use `t`, `F`, `x` and `y` (images and volumes with channels last), and `leaf(*shape)`.
    """

    def leaf(*shape: int, dtype: str = "float32") -> Any:
        count = 1
        for length in shape:
            count *= length
        # (Of few digits: so the order of a sum makes no difference.)
        values = torch.arange(float(count)).mul(1.7).sin().mul(64).round().div(64).reshape(shape)
        return values.to(getattr(torch, dtype)).requires_grad_()

    names = {
        "t": torch,
        "F": torch.nn.functional,
        "leaf": leaf,
        "x": leaf(2, 3, 4, 6).detach().contiguous(memory_format=torch.channels_last),
        "y": leaf(2, 3, 4, 6, 4).detach().contiguous(memory_format=torch.channels_last_3d),
    }
    made = eval(expression, names)  # the expressions below
    found = made if isinstance(made, tuple) else (made,)
    return [
        (
            each.detach().float(), str(each.dtype).partition(".")[2], each.stride(),
            each.grad_fn.name() if each.grad_fn is not None else None,
        )
        for each in found
    ]  # fmt: skip


FORMATS = """
    F.max_pool2d(x, 2)
    F.max_pool2d(x, 3, 2, 1, return_indices=True)
    F.max_pool2d(x[:, :2], 2)
    F.max_pool3d(y, 2)
    F.avg_pool2d(x, 2)
    F.avg_pool3d(y, 2)
    F.adaptive_avg_pool2d(x, 2)
    F.adaptive_avg_pool2d(x, 3)
    F.adaptive_max_pool2d(x, 3)
    F.adaptive_max_pool3d(y, 2)
    F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
    F.max_unpool3d(*F.max_pool3d(y, 2, return_indices=True), 2)
    F.pad(x, (1, 1, 1, 1), mode="reflect")
    F.pad(y, (1, 1, 1, 1, 1, 1), mode="replicate")
    F.pad(x, (1, 1, 1, 1), mode="circular")
    F.interpolate(x, size=(8, 8))
    F.interpolate(y, size=(8, 8, 8))
    F.interpolate(x, size=(8, 8), mode="area")
    F.interpolate(x, size=(8, 8), mode="bilinear", antialias=True)
    F.interpolate((x * 10 + 20).to(t.uint8), size=(8, 8), mode="bilinear")
    F.batch_norm(x, None, None, training=True)
    F.batch_norm(y, t.zeros(3), t.ones(3))
    F.group_norm(x, 3)
    F.instance_norm(x)
    F.conv2d(x, leaf(2, 3, 2, 2), leaf(2))
    F.conv2d(x, leaf(6, 1, 2, 2), groups=3, padding=1, stride=2)
    F.conv2d(x, leaf(2, 3, 1, 1))
    F.conv2d(x.double(), leaf(2, 3, 2, 2, dtype="float64"))
    F.conv2d(x.bfloat16(), leaf(2, 3, 2, 2, dtype="bfloat16"))
    F.conv2d(x[0], leaf(2, 3, 2, 2))
    F.conv2d(x.contiguous(), leaf(2, 3, 2, 2).contiguous(memory_format=t.channels_last))
    F.conv2d(leaf(2, 3, 4, 6).transpose(2, 3), leaf(2, 3, 2, 2))
    F.conv2d(leaf(2, 4, 6).unsqueeze(1), leaf(3, 1, 2, 2))
    F.conv2d(leaf(2, 4, 6, 1).permute(0, 3, 1, 2), leaf(3, 1, 2, 2))
    F.conv2d(leaf(2, 6).t().unsqueeze(1).unsqueeze(-1), leaf(3, 1, 2, 1))
    F.conv_transpose2d(x, leaf(3, 2, 2, 2), leaf(2), stride=2)
    F.conv_transpose2d(x.double(), leaf(3, 2, 2, 2, dtype="float64"))
    F.conv_transpose2d(leaf(2, 3, 4, 6).double(), leaf(3, 2, 2, 2).double().contiguous(memory_format=t.channels_last))
    F.conv3d(y, leaf(2, 3, 2, 2, 2))
    F.conv3d(y.double(), leaf(2, 3, 2, 2, 2, dtype="float64"))
    F.conv_transpose3d(y, leaf(3, 2, 2, 2, 2))
    F.conv_transpose3d(y.double(), leaf(3, 2, 2, 2, 2, dtype="float64"))
    F.conv1d(leaf(2, 6, 3).transpose(1, 2), leaf(2, 3, 2))
    F.avg_pool1d(leaf(2, 6, 3).transpose(1, 2), 2)
    F.adaptive_avg_pool1d(leaf(2, 6, 3).transpose(1, 2), 2)
    F.pixel_shuffle(t.cat([x] * 4, 1), 2)
    F.pixel_unshuffle(x, 2)
    F.channel_shuffle(x, 3)
"""

NAMES = """
    F.max_pool1d(leaf(1, 3, 4), 2)
    F.max_pool1d(leaf(3, 5), 2, return_indices=True)
    t.max_pool1d_with_indices(leaf(3, 5), 2)
    F.avg_pool1d(leaf(3, 5), 2)
    F.adaptive_avg_pool1d(leaf(3, 5), 1)
    F.adaptive_avg_pool1d(leaf(1, 3, 5), 2)
    F.adaptive_avg_pool2d(leaf(1, 3, 4, 4), 3)
    F.adaptive_avg_pool2d(leaf(1, 3, 4, 4), 2)
    F.adaptive_avg_pool3d(leaf(1, 3, 4, 4, 4), 2)
    F.adaptive_max_pool1d(leaf(3, 5), 2, True)
    F.max_unpool1d(*F.max_pool1d(leaf(1, 3, 4), 2, return_indices=True), 2)
    F.max_unpool2d(*F.max_pool2d(leaf(1, 3, 4, 4), 2, return_indices=True), 2)
    F.max_unpool3d(*F.max_pool3d(leaf(1, 3, 4, 4, 4), 2, return_indices=True), 2)
    F.nll_loss(leaf(2, 3, 4), t.ones(2, 4).long())
    F.cross_entropy(leaf(2, 3, 4, 5), t.ones(2, 4, 5).long(), reduction="none")
    F.cross_entropy(leaf(2, 3), t.full((2, 3), 0.5), reduction="sum")
    F.cross_entropy(leaf(2, 3), t.full((2, 3), 0.5), reduction="none")
    F.soft_margin_loss(leaf(2, 3), t.ones(2, 3))
    F.soft_margin_loss(leaf(2, 3), -t.ones(3), reduction="none")
    F.multi_margin_loss(leaf(2, 3), t.tensor([0, 2]), p=2, weight=t.tensor([1.0, 2.0, 3.0]))
    F.multi_margin_loss(leaf(), t.tensor([0]), reduction="none")
    F.multi_margin_loss(leaf(3), t.tensor(1), reduction="none")
    F.multilabel_margin_loss(leaf(2, 3), t.tensor([[0, 2, -1], [1, -1, 0]]), reduction="none")
    F.multilabel_margin_loss(leaf(), t.tensor(0))
    F.ctc_loss(leaf(4, 2, 5).log_softmax(-1), t.ones(2, 3).long(), (4, 4), (2, 2), reduction="none", zero_infinity=True)
    F.elu_(leaf(3) * 1)
    F.celu_(leaf(3) * 1)
    F.selu_(leaf(3) * 1)
    F.leaky_relu_(leaf(3) * 1)
    F.rrelu_(leaf(3) * 1)
    F.threshold_(leaf(3) * 1, 0.5, 2)
    F.hardtanh_(leaf(3) * 1)
    F.dropout3d(leaf(2, 3, 4, 5) * 1, 0.5, True, True)
    F.dropout1d(leaf(2, 3) * 1, 0.5, False, True)
    t.feature_alpha_dropout(leaf(3, 2), 1.0, True)
    t.feature_alpha_dropout(leaf(3, 2), 0.5, True)
    t.feature_alpha_dropout_(leaf(3, 2) * 1, 0.5, True)
    F.feature_alpha_dropout(leaf(3, 2) * 1, 0.5, True, True)
    t.feature_dropout(leaf(3, 2), 0.5, True)
    t.feature_dropout_(leaf(3, 2, 2) * 1, 0.5, True)
    F.batch_norm(leaf(0), None, None, training=True)
"""

VALUES = """
    F.avg_pool2d(t.arange(16).reshape(1, 4, 4) - 8, 2, divisor_override=-2)
    F.avg_pool3d(t.arange(64).reshape(1, 4, 4, 4) - 30, 2, divisor_override=-3)
    F.adaptive_avg_pool2d(t.ones(1, 4), 1)
    F.adaptive_avg_pool2d(t.ones(1, 2, 3, 4, 4), (1, 1))
    F.adaptive_avg_pool2d(t.ones(1, 0, 4, 4), 2)
    F.adaptive_avg_pool1d(t.ones(1, 0, 4), 2)
    F.max_pool1d(t.arange(5).reshape(1, 5), 2, return_indices=True)
    F.bilinear(t.ones(2, 3).byte(), t.ones(2, 4).byte(), t.ones(5, 3, 4).byte())
    F.rms_norm(t.tensor([[300.0, 400.0], [3e-4, 4e-4]], dtype=t.float16), (2,))
    F.rms_norm(t.tensor([[300.0, 400.0]], dtype=t.bfloat16), (2,), t.tensor([2.0, 3.0], dtype=t.bfloat16), 0.5)
    F.layer_norm(leaf(2, 3, dtype="float16").detach(), (3,), t.ones(3), t.ones(3))
    t.native_batch_norm(t.eye(3, dtype=t.bfloat16), None, None, None, None, True, 0.1, 0.5)
    t.native_batch_norm(t.eye(3, dtype=t.float16), t.ones(3), None, None, None, True, 0.1, 0.5)
    t.native_layer_norm(t.eye(3, dtype=t.float16), (3,), None, None, 0.5)
    t.native_layer_norm(t.eye(3, dtype=t.float16), (3,), t.ones(3), None, 0.5)
    t.native_group_norm(t.eye(4, dtype=t.bfloat16), None, None, 4, 4, 1, 2, 0.5)
"""

ERRORS = """
    F.max_pool1d(t.zeros(1, 4), 2, 0, return_indices=True)
    F.max_pool1d(t.zeros(1, 4), 2, padding=2, return_indices=True)
    F.max_pool1d(t.zeros(1, 4), 5, return_indices=True)
    F.max_pool1d(leaf(1, 4), 5)
    F.max_pool1d(leaf(1, 4), 2, padding=-1)
    F.max_pool1d(t.zeros(4), 2, return_indices=True)
    F.max_pool1d(t.zeros(1, 0, 4), 2, return_indices=True)
    F.max_pool1d(t.zeros(1, 4).bool(), 2, return_indices=True)
    F.avg_pool1d(t.zeros(1, 4), 5)
    F.avg_pool1d(t.zeros(1, 2, 0), 2)
    F.max_pool2d(t.zeros(0, 4, 4), 2, padding=2)
    F.max_pool2d(t.zeros(0, 4, 4), 2, dilation=0)
    F.max_pool2d(t.zeros(1, 4, 4), 2, -1)
    F.max_pool2d(t.zeros(0, 4, 4), 9)
    F.max_pool3d(t.zeros(0, 4, 4, 4), 2, -1)
    F.avg_pool2d(t.zeros(1, 1, 1, 4, 4), 2, 1, 5)
    F.avg_pool2d(t.zeros(1, 1, 1, 4, 4), 2, 1)
    F.avg_pool2d(t.zeros(1, 4, 4), 2, divisor_override=0, padding=-1)
    F.avg_pool3d(t.zeros(0, 4, 4, 4), 2, 0)
    F.adaptive_avg_pool1d(t.zeros(1, 4), None)
    F.adaptive_avg_pool1d(t.zeros(1, 4).long(), 1)
    F.adaptive_avg_pool1d(t.zeros(1, 2, 0), 2)
    F.adaptive_avg_pool2d(t.zeros(1, 4), (2, 2))
    F.adaptive_avg_pool2d(t.zeros(1, 4), 2)
    F.adaptive_avg_pool2d(t.zeros(1, 4, 4), (2, 2, 2))
    F.adaptive_avg_pool3d(t.zeros(1, 0, 4, 4, 4), 2)
    F.adaptive_max_pool1d(t.zeros(1, 4), -1)
    F.adaptive_max_pool2d(t.zeros(1, 4), (2, 2))
    F.adaptive_max_pool2d(t.zeros(1, 4, 4), -2)
    F.adaptive_max_pool3d(t.zeros(1, 4, 4), (2, 2, 2))
    F.conv1d(t.zeros(1, 1, 4), t.zeros(1, 2))
    F.conv2d(t.zeros(1, 1, 4, 3), t.zeros(1, 2, 2), padding="same")
    F.conv2d(t.zeros(1, 1, 4, 3), t.zeros(1, 1, 1, 2, 2), padding="same")
    F.conv_transpose2d(t.zeros(1, 1, 4, 3), t.zeros(1, 2))
    F.soft_margin_loss(t.ones(5, 4), t.ones(5))
    F.soft_margin_loss(t.ones(4), t.ones(5, 4))
    F.soft_margin_loss(t.ones(5).long(), t.ones(5))
    F.multi_margin_loss(t.ones(2, 3), t.tensor([0, 1]), weight=t.ones(1, 3))
    F.multi_margin_loss(t.ones(2, 3), t.tensor([0, 1]), weight=t.ones(3).double())
    F.multi_margin_loss(t.ones(2, 3).half(), t.tensor([0, 1]))
    F.multi_margin_loss(t.ones(5, 4), t.ones(5, 4))
    F.triplet_margin_with_distance_loss(t.zeros(3), t.zeros(3, 4), t.zeros(3, 4))
    F.rrelu(t.zeros(3), 0.3, 0.1)
    F.rrelu(t.zeros(3), 0.1, float("nan"), True)
    F.bilinear(t.ones(2, 2, 3), t.ones(2, 4), t.ones(5, 3, 4))
    F.bilinear(t.ones(2, 3), t.ones(3, 4), t.ones(5, 3, 4))
    F.bilinear(t.ones(2, 3), t.ones(2, 4), t.ones(5, 3, 4), t.ones(6))
    F.bilinear(t.ones(2, 3).double(), t.ones(2, 4), t.ones(5, 3, 4))
    t.feature_alpha_dropout(t.ones(3, 2), 2.0, True)
    t.dropout(t.ones(3), 2.0, True)
    t.alpha_dropout(t.ones(3), -1.0, True)
    t.dropout(t.ones(3).long(), 0.5, True)
    F.feature_alpha_dropout(t.ones(3), 0.5, True)
"""


@pytest.mark.parametrize(
    "expression", [line.strip() for block in (FORMATS, NAMES, VALUES, ERRORS) for line in block.strip().splitlines()]
)
def test_call(expression: str) -> None:
    same_as_pytorch(lambda torch: outcome(torch, expression), rtol=1e-2 if "float16" in expression else 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["hardsigmoid", "hardtanh", "relu6", "softshrink", "leaky_relu", "mish", "softplus"])
def test_activations_of_16_bits(name: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.linspace(-4, 4, 33).to(getattr(torch, dtype)).requires_grad_()
        out = getattr(torch.nn.functional, name)(x)
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        found = [out, grad]
        if name != "hardsigmoid":  # which has no second derivative in PyTorch
            found += torch.autograd.grad(grad.sum(), x)
        return [(each.detach().float(), str(each.dtype).partition(".")[2]) for each in found]

    tolerance = 2e-2 if dtype == "bfloat16" else 4e-3
    same_as_pytorch(program, rtol=tolerance, atol=tolerance)


def test_soft_margin_loss_of_large_scores_has_second_derivatives() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([60.0, -60.0, 0.5], requires_grad=True)
        loss = torch.nn.functional.soft_margin_loss(x, torch.tensor([1.0, 1.0, -1.0]))
        (grad,) = torch.autograd.grad(loss, x, create_graph=True)
        return grad, torch.autograd.grad(grad.sum(), x)

    same_as_pytorch(program)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_sharp_attention_of_16_bits(dtype: str, create_graph: bool) -> None:
    # Gradients of weights near 0 and 1 are small differences: with a rounded output they would be off by a fifth.
    def program(torch: Any) -> Any:
        sizes = ((4, 3, 8), (4, 6, 8), (4, 6, 8))
        kind = getattr(torch, dtype)
        made = [
            (torch.arange(float(a * b * c)) * (k + 1.3)).sin().mul(5).reshape(a, b, c).to(kind).requires_grad_()
            for k, (a, b, c) in enumerate(sizes)
        ]
        out = torch.nn.functional.scaled_dot_product_attention(*made, is_causal=True)
        grads = torch.autograd.grad((out * out).sum(), made, create_graph=create_graph)
        return [each.detach().float() for each in (out, *grads)]

    tolerance = 2e-3 if dtype == "float16" else 2e-2
    same_as_pytorch(program, rtol=tolerance, atol=10 * tolerance)


SAME = """
    F.grad.conv1d_input((1, 1, 4), t.ones(1, 1, 2), t.ones(1, 1, 3))
    t.nn.Conv2d(3, 2, 2).to(memory_format=t.channels_last).weight.stride()
    t.nn.Conv3d(3, 2, 2).to("cpu", memory_format=t.channels_last_3d).weight.stride()
    t.nn.Linear(3, 2).to(memory_format=t.channels_last).weight.stride()
    t.nn.Fold((4, 5), 2, dilation=8)(t.ones(1, 12, 12))
    t.nn.utils.spectral_norm(t.nn.LazyLinear(7))
    t.nn.utils.weight_norm(t.nn.LazyLinear(7))
    F.embedding_bag(t.tensor([1, 10]), t.ones(10, 2), t.tensor([0]))
    F.embedding_bag(t.tensor([-1, 1]), t.ones(10, 2).half(), t.tensor([0]), mode="sum")
    F.embedding_bag(t.tensor([1, 10]), t.ones(10, 2).double(), t.tensor([0]))
    F.embedding_bag(t.tensor([1, 10]), t.ones(10, 2), t.tensor([0]), mode="max")
    F.embedding_bag(t.tensor([1, -3]), t.ones(10, 2), t.tensor([0]), padding_idx=1)
    F.embedding_bag(t.tensor([1, 2]), t.ones(10, 2).int(), t.tensor([0]))
    F.embedding_bag(t.tensor([1, 2]), t.ones(3, 2), t.tensor([0]), mode="sum", per_sample_weights=t.ones(2).double())
    t.tensor([1.0]).as_strided((0,), (1,), 2)
    t._VF._add_relu(t.tensor([1.0, -1.0]), t.tensor([1.0, -1.0]), alpha=2)
    t._VF.lstm_cell(t.ones(1, 2), (t.ones(1, 1), t.ones(1, 1)), t.ones(4, 2), t.ones(4, 1))
    t.nn.ReLU()([1.0])
    t.nn.ReLU(inplace=True)((1.0,))
    t.nn.Dropout()((1.0,))
    t.nn.Sigmoid()((1.0,))
    t.nn.Tanh()((1.0,))
    t.nn.LayerNorm(2)((1.0,))
    t.nn.Embedding(2, 2)([0])
    t.nn.Embedding(2, 2)(0)
    F.pad(x, (1, 1), mode="wrong")
    F.pad(x, (1, 1), mode="wrong", value=2.0)
    F.max_unpool2d(t.ones(0, 1, 2, 2), t.zeros(0, 1, 2, 2, dtype=t.int64), 2)
    F.grid_sample(t.ones(0, 2, 3, 3), t.ones(0, 2, 2, 2), align_corners=True)
    F.embedding_bag(t.arange(6.0).view(3, 2), t.tensor([1, 2, 2]), t.tensor([0]))
    t.nn.LSTMCell(2, 3)(t.ones(2, 2), t.ones(2, 3))
    t.nn.LSTMCell(2, 3)(t.ones(2), (t.ones(2, 3), t.ones(2, 3)))
    t.nn.LSTMCell(2, 3)(t.ones(2, 2), (t.ones(3), t.ones(3)))
    t.nn.LSTMCell(2, 3)(t.ones(2, 2), (t.ones(2, 3),))
    t.nn.RNNCell(2, 3)(t.ones(2), t.ones(2, 3))
    t.nn.RNNCell(2, 3)(t.ones(2, 2), t.ones(3))
    t.nn.GRUCell(2, 3)(t.ones(2), t.ones(1, 3))
    t.nn.Linear(3, 5).to("cpu", copy=True)
    t.nn.Linear(3, 5).to(t.ones(1), False, True)
    t.ones(3).T
    t.ones(2, 3).T
    F.mse_loss(x, x + 2, reduction="elementwise_mean")
    F.nll_loss(-t.eye(2), t.tensor([0, 1]), reduction="elementwise_mean")
    R.get_enum("none"), R.get_enum("elementwise_mean"), R.get_enum("sum")
    R.get_enum("wrong")
    R.legacy_get_string(None, False), R.legacy_get_string(False, True), R.legacy_get_string(None, None, False)
    R.legacy_get_enum(False, None), R.legacy_get_enum(None, None, emit_warning=False)
    t.nn.utils.convert_conv2d_weight_memory_format(t.nn.Conv2d(2, 3, 2), t.channels_last).weight.stride()
    t.nn.utils.convert_conv2d_weight_memory_format(S(t.nn.Conv1d(2, 3, 2)), t.channels_last)[0].weight.stride()
    t.nn.utils.convert_conv2d_weight_memory_format(S(t.nn.ConvTranspose2d(2, 3, 2)), t.channels_last)[0].weight.stride()
    t.nn.utils.convert_conv3d_weight_memory_format(S(t.nn.Conv3d(2, 3, 2)), t.channels_last_3d)[0].weight.stride()
""".strip().splitlines()


@pytest.mark.parametrize("expression", [line.strip() for line in SAME])
def test_calls_with_unusual_arguments(expression: str) -> None:
    def program(torch: Any) -> Any:
        names = {
            "t": torch,
            "F": torch.nn.functional,
            "R": importlib.import_module(f"{torch.__name__}.nn._reduction"),
            "S": torch.nn.Sequential,
            "x": torch.ones(1, 1, 4, 4),
        }
        torch.manual_seed(1)
        return eval(expression, names)  # the expressions above

    same_as_pytorch(program)


NOTHING = """
    g(F.instance_norm, (0, 3, 2)); t.batch_norm(q * 0, *[None] * 4, True, 0, 0, False); g(F.instance_norm, (2, 0, 3))
    g(lambda x: F.batch_norm(x, None, None, training=True), (2, 0, 3))
    g(lambda x: F.batch_norm(x, t.zeros(0), t.ones(0), training=True), (3, 0)); g(F.conv1d, (2, 0, 5), (4, 0, 2), (4,))
    g(lambda x: F.embedding(i(2, 3), x), (5, 0)); g(lambda x: F.embedding(i(2, 0), x, padding_idx=0), (5, 0))
    g(lambda x: F.embedding_bag(i(5), x, i(3), mode="sum"), (5, 0))
    F.embedding_bag(i(5), t.ones(5, 3), i(0), mode="sum")
    F.embedding_bag(i(5), t.ones(5, 3), i(0), mode="max", include_last_offset=True)
    g(lambda x: F.cross_entropy(x, t.zeros(2, 0, 3), label_smoothing=0.1), (2, 0, 3))
    F.cross_entropy(t.zeros(2, 0, 3, 2), i(2, 3, 2)); F.ctc_loss(t.zeros(5, 0, 3), i(0, 2), i(0), i(0))
    F.ctc_loss(t.zeros(0, 2, 3), i(2, 2), i(2), i(2)); F.ctc_loss(t.zeros(5, 2, 3), i(2, 2, 2), i(2), i(2))
    A(q, q, q, t.zeros(4), dropout_p=1.0); A(q, q, q, t.zeros(())); A(q, q, q, i(4) == 0)
    g(lambda m: A(q, q, q, m), (4,)); g(lambda m: A(q, q, q, m, is_causal=True), (4, 4))
    g(lambda x: A(x, q, q, q[0, 0, :, :1], is_causal=True), (2, 3, 4, 2))
    A(q, q[:, :1], q[:, :1], q[..., :1] > 0, is_causal=True, enable_gqa=True)
    A(q, q, q, q[..., :1], is_causal=True, dropout_p=1.0); A(q, q, q[..., :1], q[0, 0, :, :1], is_causal=True)
    A(q[0], q[0], q[0], t.zeros(4, 4), is_causal=True); A(q, q[:, :, :0], q[:, :, :0], t.zeros(1), is_causal=True)
    g(lambda x, w: F.batch_norm(x, None, None, w, training=True), (0, 3), (3,))
    F.instance_norm(t.ones(0, 3, 2), weight=t.ones(3)); g(lambda w: t.group_norm(t.ones(2, 3, 0), 1, w), (3,))
    t.native_batch_norm(t.ones(2, 3, 0), *[None] * 4, True, 0.1, 1e-5); t.lu_unpack(t.ones(2, 2), i(2).int() + 3)
    t.gru_cell(q[0, 0], q[0, 0], t.ones(5, 2), t.ones(6, 2)); t.rnn_tanh_cell(t.ones(1, 1, 1), *[t.ones(1, 1)] * 3)
    t.lstm_cell(q[0, 0], (q[0, 0], q[0, 0]), t.ones(8, 2), t.ones(7, 2)); t.rnn_relu_cell(*[t.ones(1)] * 4)
    t.segment_reduce(t.ones(3), "sum", offsets=i(0)); t.segment_reduce(t.ones(0), "mean", lengths=i(0))
    g(lambda x: F.adaptive_avg_pool2d(x, (0, 2)), (2, 3, 4)); g(lambda x: F.adaptive_max_pool1d(x, 0), (0, 2, 3))
    g(lambda x: F.rrelu(x * 1, -0.5, 0.2, inplace=True), (2,)); t.lu_unpack(t.ones(3, 1), i(3).int() + 3, True, False)
    g(lambda x: t.group_norm(x, 2, t.ones(0)), (2, 0)); t.index_copy(t.ones(()), 0, i(0), t.ones(0))
    t.native_group_norm(t.ones(2, 4, 0), None, None, 2, 4, 0, 2, 1); t.native_layer_norm(q[..., :0], [0], None, None, 1)
    t.cov(t.ones(0), aweights=t.ones(0)); t.histogramdd(t.ones(3, 0), 4); t.histogramdd(t.ones(3, 0), 2, [0.0, 1])
"""


def test_the_gradient_of_no_bags_is_zero() -> None:
    # (PyTorch's is memory that was not written.)
    x = tinytorch.ones(5, 3, requires_grad=True)
    tinytorch.nn.functional.embedding_bag(
        tinytorch.arange(5), x, tinytorch.zeros(0).long(), mode="sum"
    ).sum().backward()
    assert tinytorch.equal(x.grad, tinytorch.zeros(5, 3))


@pytest.mark.parametrize("expression", expressions(NOTHING))
def test_sizes_of_nothing_and_masks(expression: str) -> None:
    def program(torch: Any) -> Any:
        def g(function: Any, *shapes: tuple[int, ...]) -> Any:
            inputs = [torch.ones(shape, requires_grad=True) for shape in shapes]
            out = function(*inputs)
            return [out, *torch.autograd.grad(out.sum(), inputs)]

        F, q = torch.nn.functional, torch.arange(48.0).sin().reshape(2, 3, 4, 2)
        scope = {"t": torch, "F": F, "A": F.scaled_dot_product_attention, "q": q, "g": g}
        return eval(expression, {**scope, "i": lambda *sizes: torch.zeros(sizes, dtype=torch.int64)})

    same_as_pytorch(program)


@needs_oracle
def test_adagrad_needs_to_know_shapes() -> None:
    for name in ("tinytorch", "torch"):
        library = importlib.import_module(name)
        with pytest.raises(ValueError, match="uninitialized parameter"):
            library.optim.Adagrad(library.nn.LazyLinear(7).parameters())
