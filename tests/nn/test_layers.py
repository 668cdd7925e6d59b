"""Linear layers, activations, dropout, shapes, losses: numbers, reprs, errors as PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_to_the_word as check
from tinytorch import nn


def points(torch: Any, *shape: int) -> Any:
    """Return numbers on both sides of all bends, that require grad."""
    torch.manual_seed(1)
    return (torch.randn(*shape or (4, 6)) * 3).requires_grad_()


def ran(torch: Any, make: Any, *inputs: Any) -> Any:
    """Return the layer's repr, its output, and the gradients of input and parameters."""
    torch.manual_seed(0)
    layer = make(torch.nn)
    x = inputs[0] if inputs else points(torch)
    out = layer(x, *inputs[1:])
    (out * torch.linspace(-1, 2, out.numel()).reshape(out.shape)).sum().backward()
    return [layer, out, x.grad, [(name, p, p.grad) for name, p in layer.named_parameters()]]


def layer(make: Any, *shape: int) -> Any:
    return lambda torch: ran(torch, make, points(torch, *shape))


LINEAR = {
    "Linear": layer(lambda nn: nn.Linear(6, 3)),
    "Linear without bias": layer(lambda nn: nn.Linear(6, 3, bias=False)),
    "Linear on a vector": layer(lambda nn: nn.Linear(6, 3), 6),
    "Linear on many dimensions": layer(lambda nn: nn.Linear(6, 3), 2, 3, 4, 6),
    "Linear, double": lambda t: t.nn.Linear(3, 2, dtype=t.float64, device="cpu").weight.dtype,
    "Linear of nothing": lambda t: list(t.nn.Linear(0, 2).parameters()),
    "Linear to nothing": lambda t: list(t.nn.Linear(2, 0).parameters()),
    "Linear, large": lambda t: seeded(t, lambda: t.nn.Linear(100, 50)),
    "Linear, seeded twice": lambda t: [seeded(t, lambda: t.nn.Linear(3, 2)), t.nn.Linear(3, 2).weight],
    "reset_parameters": lambda t: reset(t),
    "Identity": layer(lambda nn: nn.Identity(3, more=True)),
    "Bilinear": lambda t: ran(t, lambda nn: nn.Bilinear(6, 5, 2), points(t), t.ones(4, 5)),
    "Bilinear without bias": lambda t: ran(t, lambda nn: nn.Bilinear(6, 5, 2, bias=False), points(t), t.ones(4, 5)),
    "Bilinear of nothing": lambda t: t.nn.Bilinear(0, 5, 2),
    "Flatten": layer(lambda nn: nn.Flatten(), 2, 3, 4),
    "Flatten some": layer(lambda nn: nn.Flatten(0, -2), 2, 3, 4),
    "Unflatten": layer(lambda nn: nn.Unflatten(1, (2, 3))),
    "Unflatten by list": lambda t: repr(t.nn.Unflatten(1, [2, 3])),
    "Unflatten by number": lambda t: t.nn.Unflatten(1, 6),
    "Unflatten by float": lambda t: t.nn.Unflatten(1, (2, 3.0)),
}


def looked_up(torch: Any, indices: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    table = torch.nn.Embedding(6, 3, **options)
    out = table(torch.tensor(indices))
    out.square().sum().backward()
    return [table, out, table.weight, table.weight.grad]


def pretrained(torch: Any) -> Any:
    rows = torch.arange(6.0).reshape(3, 2)
    table = torch.nn.Embedding.from_pretrained(rows, padding_idx=-1)
    rows[0, 0] = 100.0  # the memory is shared
    trained = torch.nn.Embedding.from_pretrained(rows, freeze=False)
    return [table, table(torch.tensor([0, 2])), trained.weight.requires_grad]


EMBEDDING = {
    "Embedding": lambda t: looked_up(t, [[1, 5], [1, 0]]),
    "Embedding of one": lambda t: looked_up(t, 3),
    "Embedding, padding": lambda t: looked_up(t, [1, 2, 4, 2], padding_idx=2),
    "Embedding, padding from the end": lambda t: looked_up(t, [1, 5], padding_idx=-1),
    "Embedding, max_norm": lambda t: looked_up_without_gradient(t, max_norm=1.0),
    "Embedding, max_norm of type 1": lambda t: looked_up_without_gradient(t, max_norm=1.0, norm_type=1.0),
    "Embedding, scaled": lambda t: looked_up(t, [1, 1, 2], scale_grad_by_freq=True),
    "Embedding, padding too large": lambda t: t.nn.Embedding(3, 2, padding_idx=3),
    "Embedding, padding too small": lambda t: t.nn.Embedding(3, 2, padding_idx=-4),
    "Embedding, index out of range": lambda t: looked_up(t, [6]),
    "Embedding, double": lambda t: t.nn.Embedding(3, 2, dtype=t.float64).weight.dtype,
    "Embedding, frozen": lambda t: t.nn.Embedding(3, 2, _freeze=True).weight.requires_grad,
    "Embedding, wrong table": lambda t: t.nn.Embedding(3, 2, _weight=t.ones(2, 2)),
    "from_pretrained": pretrained,
    "from_pretrained of a vector": lambda t: t.nn.Embedding.from_pretrained(t.ones(3)),
}


def looked_up_without_gradient(torch: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    table = torch.nn.Embedding(6, 3, **options)
    with torch.no_grad():
        return [table, table(torch.tensor([0, 3])), table.weight]


NORM = {
    "LayerNorm": layer(lambda nn: nn.LayerNorm(6)),
    "LayerNorm over two": layer(lambda nn: nn.LayerNorm((4, 6), eps=0.1)),
    "LayerNorm by list": layer(lambda nn: nn.LayerNorm([6])),
    "LayerNorm without bias": layer(lambda nn: nn.LayerNorm(6, bias=False)),
    "LayerNorm without parameters": layer(lambda nn: nn.LayerNorm(6, elementwise_affine=False)),
    "LayerNorm, double": lambda t: t.nn.LayerNorm(2, dtype=t.float64).weight,
    "RMSNorm": layer(lambda nn: nn.RMSNorm(6)),
    "RMSNorm over two, without weight": layer(lambda nn: nn.RMSNorm((4, 6), eps=0.1, elementwise_affine=False)),
    "LayerNorm, wrong shape": layer(lambda nn: nn.LayerNorm(5)),
}


def seeded(torch: Any, make: Any) -> Any:
    torch.manual_seed(3)
    return list(make().parameters())


def reset(torch: Any) -> Any:
    torch.manual_seed(3)
    made = torch.nn.Linear(3, 2)
    made.reset_parameters()
    return list(made.parameters())


ACTIVATIONS = {
    "ReLU": lambda nn: nn.ReLU(),
    "Threshold": lambda nn: nn.Threshold(0.5, 20),
    "Hardtanh": lambda nn: nn.Hardtanh(),
    "Hardtanh, bounds": lambda nn: nn.Hardtanh(-2.0, 0.5),
    "Hardtanh, old names": lambda nn: nn.Hardtanh(min_value=-2.0, max_value=0.5),
    "ReLU6": lambda nn: nn.ReLU6(),
    "LeakyReLU": lambda nn: nn.LeakyReLU(),
    "LeakyReLU, slope": lambda nn: nn.LeakyReLU(0.2),
    "PReLU": lambda nn: nn.PReLU(),
    "PReLU by channel": lambda nn: nn.PReLU(6, init=0.1),
    "RReLU in evaluation": lambda nn: nn.RReLU().eval(),
    "ELU": lambda nn: nn.ELU(),
    "ELU, alpha": lambda nn: nn.ELU(0.5),
    "CELU": lambda nn: nn.CELU(2.0),
    "SELU": lambda nn: nn.SELU(),
    "GELU": lambda nn: nn.GELU(),
    "GELU by tanh": lambda nn: nn.GELU(approximate="tanh"),
    "GLU": lambda nn: nn.GLU(),
    "GLU, first dimension": lambda nn: nn.GLU(0),
    "SiLU": lambda nn: nn.SiLU(),
    "Mish": lambda nn: nn.Mish(),
    "Hardsigmoid": lambda nn: nn.Hardsigmoid(),
    "Hardswish": lambda nn: nn.Hardswish(),
    "Sigmoid": lambda nn: nn.Sigmoid(),
    "LogSigmoid": lambda nn: nn.LogSigmoid(),
    "Tanh": lambda nn: nn.Tanh(),
    "Tanhshrink": lambda nn: nn.Tanhshrink(),
    "Softplus": lambda nn: nn.Softplus(),
    "Softplus, sharp": lambda nn: nn.Softplus(beta=2, threshold=3),
    "Softsign": lambda nn: nn.Softsign(),
    "Hardshrink": lambda nn: nn.Hardshrink(),
    "Softshrink": lambda nn: nn.Softshrink(1.0),
    "Softmax": lambda nn: nn.Softmax(dim=1),
    "Softmax, first dimension": lambda nn: nn.Softmax(0),
    "Softmax, guessed dimension": lambda nn: nn.Softmax(),
    "Softmin": lambda nn: nn.Softmin(dim=1),
    "LogSoftmax": lambda nn: nn.LogSoftmax(dim=-1),
    "LogSoftmax, guessed dimension": lambda nn: nn.LogSoftmax(),
}

IN_PLACE = ["ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish", "Hardtanh"]


def in_place(name: str) -> Any:
    def program(torch: Any) -> Any:
        act = getattr(torch.nn, name)(inplace=True)
        leaf = points(torch)
        x = leaf * 1
        out = act(x)
        out.sum().backward()
        return [act, out is x, out, leaf.grad]

    return program


def softmax_2d(torch: Any) -> Any:
    act = torch.nn.Softmax2d()
    return [act, act(points(torch, 2, 3, 2, 2)), act(points(torch, 3, 2, 2))]


MORE_ACTIVATIONS = {
    "Softmax2d": softmax_2d,
    "Softmax2d on a matrix": lambda t: t.nn.Softmax2d()(t.ones(2, 2)),
    "Hardtanh, bounds swapped": lambda t: t.nn.Hardtanh(1.0, -1.0),
    "Threshold in place": lambda t: repr(t.nn.Threshold(0.1, 2, True)),
    "RReLU in place": lambda t: repr(t.nn.RReLU(0.1, 0.2, True)),
    "PReLU, double": lambda t: t.nn.PReLU(dtype=t.float64).weight,
}


def dropped(torch: Any, **options: Any) -> Any:
    torch.manual_seed(5)
    layer = torch.nn.Dropout(**options)
    x = torch.ones(4, 5)
    out = layer(x)
    return [layer, out, out is x, layer.eval()(torch.ones(3))]


def channels_dropped(torch: Any, name: str, *shape: int) -> Any:
    torch.manual_seed(5)
    layer = getattr(torch.nn, name)(0.4)
    return [layer, layer(torch.ones(shape)), layer.eval()(torch.ones(shape)).sum()]


DROPOUT = {
    "Dropout": dropped,
    "Dropout, p": lambda t: dropped(t, p=0.2),
    "Dropout in place": lambda t: dropped(t, p=0.2, inplace=True),
    "Dropout of all": lambda t: dropped(t, p=1.0),
    "Dropout of none": lambda t: dropped(t, p=0.0),
    "Dropout1d": lambda t: channels_dropped(t, "Dropout1d", 2, 5, 3),
    "Dropout2d": lambda t: channels_dropped(t, "Dropout2d", 2, 5, 3, 2),
    "Dropout3d": lambda t: channels_dropped(t, "Dropout3d", 2, 5, 1, 2, 2),
    "AlphaDropout": lambda t: channels_dropped(t, "AlphaDropout", 4, 5),
    "Dropout, p too large": lambda t: t.nn.Dropout(1.5),
    "Dropout, p negative": lambda t: t.nn.Dropout(-0.1),
}


def loss(make: Any, target: Any, squash: Any = None) -> Any:
    """Return a program: the loss module's repr, value, gradient and state."""

    def program(torch: Any) -> Any:
        criterion = make(torch)
        x = points(torch)
        value = criterion(squash(torch, x) if squash else x, target(torch))
        value.sum().backward()
        return [criterion, criterion.reduction, value, x.grad, criterion.state_dict()]

    return program


def classes(torch: Any) -> Any:
    return torch.tensor([0, 5, 2, 2])


def numbers(torch: Any) -> Any:
    torch.manual_seed(9)
    return torch.randn(4, 6)


def shares(torch: Any) -> Any:
    torch.manual_seed(9)
    return torch.rand(4, 6)


def weights(torch: Any) -> Any:
    return torch.tensor([0.5, 1.0, 2.0, 1.0, 1.0, 3.0])


def logarithms(torch: Any, x: Any) -> Any:
    return torch.nn.functional.log_softmax(x, 1)


def probabilities(torch: Any, x: Any) -> Any:
    return x.sigmoid()


def moderate(torch: Any, x: Any) -> Any:
    """Return probabilities that are not so near to 1 that PyTorch's slope of sigmoid loses digits."""
    return (x / 2).sigmoid()


LOSSES = {
    "L1Loss": loss(lambda t: t.nn.L1Loss(), numbers),
    "L1Loss, none": loss(lambda t: t.nn.L1Loss(reduction="none"), numbers),
    "MSELoss": loss(lambda t: t.nn.MSELoss(), numbers),
    "MSELoss, sum": loss(lambda t: t.nn.MSELoss(reduction="sum"), numbers),
    "MSELoss, size_average": loss(lambda t: t.nn.MSELoss(size_average=False), numbers),
    "MSELoss, average and reduce": loss(lambda t: t.nn.MSELoss(True, True), numbers),
    "MSELoss, reduce": loss(lambda t: t.nn.MSELoss(reduce=False), numbers),
    "MSELoss, reduce only": loss(lambda t: t.nn.MSELoss(reduce=True, reduction="sum"), numbers),
    "SmoothL1Loss": loss(lambda t: t.nn.SmoothL1Loss(beta=0.5), numbers),
    "HuberLoss": loss(lambda t: t.nn.HuberLoss(delta=2), numbers),
    "HuberLoss, delta no number": lambda t: t.nn.HuberLoss(delta="x"),
    "KLDivLoss": loss(lambda t: t.nn.KLDivLoss(reduction="batchmean"), shares, logarithms),
    "KLDivLoss, logarithms": loss(lambda t: t.nn.KLDivLoss(reduction="sum", log_target=True), numbers, logarithms),
    "NLLLoss": loss(lambda t: t.nn.NLLLoss(), classes, logarithms),
    "NLLLoss, weighted": loss(lambda t: t.nn.NLLLoss(weights(t), ignore_index=2), classes, logarithms),
    "CrossEntropyLoss": loss(lambda t: t.nn.CrossEntropyLoss(), classes),
    "CrossEntropyLoss, weighted": loss(lambda t: t.nn.CrossEntropyLoss(weights(t)), classes),
    "CrossEntropyLoss, smoothed": loss(lambda t: t.nn.CrossEntropyLoss(label_smoothing=0.1), classes),
    "CrossEntropyLoss, ignored": loss(lambda t: t.nn.CrossEntropyLoss(ignore_index=2, reduction="none"), classes),
    "CrossEntropyLoss of shares": loss(lambda t: t.nn.CrossEntropyLoss(), shares),
    "BCELoss": loss(lambda t: t.nn.BCELoss(), shares, probabilities),
    "BCELoss, weighted": loss(lambda t: t.nn.BCELoss(weights(t), reduction="sum"), shares, moderate),
    "BCEWithLogitsLoss": loss(lambda t: t.nn.BCEWithLogitsLoss(), shares),
    "BCEWithLogitsLoss, weighted": loss(
        lambda t: t.nn.BCEWithLogitsLoss(weights(t), pos_weight=weights(t) * 2), shares
    ),
    "weight is a buffer": lambda t: t.nn.CrossEntropyLoss(weights(t)).double().weight,
    "weight is a number": lambda t: t.nn.NLLLoss(weight=3),
    "wrong reduction": lambda t: t.nn.MSELoss(reduction="avg")(t.ones(1), t.ones(1)),
}


def signs(torch: Any) -> Any:
    return torch.tensor([[1.0, -1.0, 1.0]]).repeat(4, 2)


def counts(torch: Any) -> Any:
    return torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]).repeat(4, 1)


def labels(torch: Any) -> Any:
    return torch.tensor([[0.0, 1.0, 1.0, 0.0, 0.0, 1.0]]).repeat(4, 1)


def on(make: Any, *others: Any) -> Any:
    """Return a program: a loss or distance of one trained input and others."""

    def program(torch: Any) -> Any:
        criterion = make(torch)
        x = points(torch)
        value = criterion(x, *(other(torch) for other in others))
        value.sum().backward()
        return [criterion, value, x.grad]

    return program


def city_block(x: Any, y: Any) -> Any:
    return (x - y).abs().sum(1)


MORE_LOSSES = {
    "PoissonNLLLoss": loss(lambda t: t.nn.PoissonNLLLoss(), counts),
    "PoissonNLLLoss, settings": loss(
        lambda t: t.nn.PoissonNLLLoss(log_input=False, full=True, eps=0.01, reduction="sum"), counts, probabilities
    ),
    "GaussianNLLLoss": on(lambda t: t.nn.GaussianNLLLoss(full=True, eps=0.1), numbers, shares),
    "HingeEmbeddingLoss": loss(lambda t: t.nn.HingeEmbeddingLoss(2.0), signs),
    "SoftMarginLoss": loss(lambda t: t.nn.SoftMarginLoss(reduction="sum"), signs),
    "MultiLabelSoftMarginLoss": loss(lambda t: t.nn.MultiLabelSoftMarginLoss(weights(t)), labels),
    "MultiMarginLoss": loss(lambda t: t.nn.MultiMarginLoss(2, 0.5, weights(t)), classes),
    "MultiMarginLoss, cubed": lambda t: t.nn.MultiMarginLoss(p=3),
    "MultiMarginLoss, weight a matrix": lambda t: t.nn.MultiMarginLoss(weight=t.ones(2, 2)),
    "CosineEmbeddingLoss": on(
        lambda t: t.nn.CosineEmbeddingLoss(margin=0.1), numbers, lambda t: t.tensor([1, -1, 1, -1])
    ),
    "MarginRankingLoss": on(lambda t: t.nn.MarginRankingLoss(0.5), numbers, signs),
    "TripletMarginLoss": on(lambda t: t.nn.TripletMarginLoss(p=1, swap=True), numbers, shares),
    "TripletMarginLoss, no margin": lambda t: t.nn.TripletMarginLoss(margin=0),
    "TripletMarginWithDistanceLoss": on(lambda t: t.nn.TripletMarginWithDistanceLoss(margin=3.0), numbers, shares),
    "TripletMarginWithDistanceLoss of one's own": lambda t: on(
        lambda t: t.nn.TripletMarginWithDistanceLoss(distance_function=city_block, swap=True), numbers, shares
    )(t)[1:],
    "TripletMarginWithDistanceLoss, no margin": lambda t: t.nn.TripletMarginWithDistanceLoss(margin=-1),
    "CosineSimilarity": on(lambda t: t.nn.CosineSimilarity(dim=0), numbers),
    "PairwiseDistance": on(lambda t: t.nn.PairwiseDistance(p=3, keepdim=True), numbers),
}


def trained(torch: Any) -> Any:
    """Return the losses of a model with everything random in it: initialisation, data, dropout."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Embedding(7, 8), nn.Flatten(), nn.Linear(24, 16), nn.LayerNorm(16), nn.GELU(),
        nn.Dropout(0.3), nn.Linear(16, 4),
    )  # fmt: skip
    x, y = torch.randint(7, (20, 3)), torch.randint(4, (20,))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for _ in range(20):
        model.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
        losses.append(loss.item())
    model.eval()
    return [losses, losses[-1] < losses[0] / 2, model(x)[0]]


PROGRAMS = {
    "training": trained,
    **LINEAR,
    **{name: layer(make) for name, make in ACTIVATIONS.items()},
    **{f"{name} in place": in_place(name) for name in IN_PLACE},
    **MORE_ACTIVATIONS,
    **EMBEDDING,
    **NORM,
    **DROPOUT,
    **LOSSES,
    **MORE_LOSSES,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


def test_pytorch_s_paths_import() -> None:
    from tinytorch.nn.modules import activation, container, dropout, flatten, linear, loss, module
    from tinytorch.nn.parameter import Parameter

    assert nn.Parameter is Parameter
    assert nn.Module is module.Module and nn.Linear is linear.Linear and nn.ReLU is activation.ReLU
    assert nn.Sequential is container.Sequential and nn.Dropout is dropout.Dropout
    assert nn.MSELoss is loss.MSELoss and nn.Flatten is flatten.Flatten


def test_every_public_name_is_there_once() -> None:
    from tinytorch.nn.modules import (
        activation,
        container,
        distance,
        dropout,
        flatten,
        linear,
        loss,
        module,
        normalization,
        sparse,
    )

    for file in (
        nn,
        nn.modules,
        nn.init,
        nn.utils,
        nn.parameter,
        activation,
        container,
        distance,
        dropout,
        flatten,
        linear,
        loss,
        normalization,
        sparse,
    ):
        assert len(set(file.__all__)) == len(file.__all__), file.__name__
        assert all(hasattr(file, name) for name in file.__all__), file.__name__
    for file in (activation, container, distance, dropout, flatten, linear, loss, normalization, sparse):
        assert set(file.__all__) <= set(nn.__all__), file.__name__
    assert module.Module is nn.Module


def test_a_small_model_learns() -> None:
    tinytorch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    x = tinytorch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tinytorch.tensor([0, 1, 1, 0])
    criterion = nn.CrossEntropyLoss()
    for _ in range(300):
        model.zero_grad()
        criterion(model(x), y).backward()
        with tinytorch.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
    assert model(x).argmax(1).tolist() == [0, 1, 1, 0]


@needs_oracle
def test_pytorchs_tensors_are_taken_as_inputs() -> None:
    """torchvision's data sets give them: the quickstart's last lines put one into the model."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 2), nn.Softmax(1))
    x = torch.arange(6.0).reshape(1, 2, 3)
    out = model(x)
    assert isinstance(out, tinytorch.Tensor)
    expected = model(tinytorch.arange(6.0).reshape(1, 2, 3))
    assert out.tolist() == expected.tolist()
    out[0, 0].backward()
    assert model[1].weight.grad is not None
