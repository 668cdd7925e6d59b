"""Transforms and constraints against PyTorch's: values, inverses, Jacobians, shapes, equality, repr, errors."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.same import Raised, raised, same_as_pytorch

TRANSFORMS = """
    T.ExpTransform()
    T.ExpTransform().inv
    T.ExpTransform(cache_size=1)
    T.SigmoidTransform()
    T.SoftplusTransform()
    T.TanhTransform()
    T.AbsTransform()
    T.AffineTransform(1.0, -2.0)
    T.AffineTransform(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-2.0, 1.0, 0.5]))
    T.AffineTransform(1.0, 3.0, event_dim=1)
    T.PowerTransform(torch.tensor(2.0))
    T.PowerTransform(torch.tensor([-1.0, 0.5, 2.0]))
    T.SoftmaxTransform()
    T.StickBreakingTransform()
    T.ComposeTransform([])
    T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])
    T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.StickBreakingTransform()])
    T.ComposeTransform([T.SigmoidTransform(), T.ReshapeTransform((3,), (3, 1))])
    T.IndependentTransform(T.TanhTransform(), 1)
    T.ReshapeTransform((3,), (1, 3))
    T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=-1, lengths=[1, 2])
    T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], dim=-1)
    T.CumulativeDistributionTransform(d.Normal(0.0, 1.0))
    T.CorrCholeskyTransform()
    T.LowerCholeskyTransform()
    T.PositiveDefiniteTransform()
    d.biject_to(d.constraints.positive)
    d.biject_to(d.constraints.simplex)
    d.biject_to(d.constraints.interval(-1.0, 2.0))
    d.biject_to(d.constraints.unit_interval)
    d.biject_to(d.constraints.greater_than(2.0))
    d.biject_to(d.constraints.less_than(2.0))
    d.biject_to(d.constraints.real_vector)
    d.biject_to(d.constraints.corr_cholesky)
    d.biject_to(d.constraints.cat([d.constraints.positive, d.constraints.real], -1, [1, 2]))
    d.biject_to(d.constraints.stack([d.constraints.positive, d.constraints.real, d.constraints.real], -1))
    d.transform_to(d.constraints.positive)
    d.transform_to(d.constraints.simplex)
    d.transform_to(d.constraints.lower_cholesky)
    d.transform_to(d.constraints.positive_definite)
    d.transform_to(d.constraints.independent(d.constraints.positive, 1))
    d.transform_to(d.constraints.half_open_interval(0.0, 1.0))
""".strip().splitlines()


def attempt(function: Any) -> Any:
    try:
        return function()
    except Exception as error:
        return raised(error)


def attempt_value(function: Any) -> Any:
    value = attempt(function)
    return value.detach() if hasattr(value, "detach") else value


@pytest.mark.parametrize("expression", [each.strip() for each in TRANSFORMS])
def test_transforms(expression: str) -> None:
    square = any(each in expression for each in ("Lower", "lower", "PositiveDef", "positive_def"))

    def program(torch: Any) -> Any:
        d = torch.distributions
        t = eval(expression, {"torch": torch, "d": d, "T": d.transforms})
        x = torch.tensor([[0.3, 1.2, 0.7], [0.1, 0.5, 2.0]])
        if square:
            x = torch.stack([x, x + 1, x - 1], -1)
        x.requires_grad_()
        y = t(x)
        jacobian = attempt(lambda: t.log_abs_det_jacobian(x, y))
        found = [str(t), y.detach(), attempt_value(lambda: t.inv(y))]
        if isinstance(jacobian, Raised):
            found.append(jacobian)
        else:
            found += [jacobian.detach(), torch.autograd.grad((y * y).sum() + jacobian.sin().sum(), x)]
        found += [
            str(t.inv), t.inv.inv == t, t == t, t != t, bool(t.bijective), str(t.domain), str(t.codomain),
            attempt(lambda: t.event_dim), attempt(lambda: t.sign), attempt(lambda: t.inv.sign),
            attempt(lambda: t.domain.event_dim), attempt(lambda: t.codomain.event_dim),
            attempt(lambda: tuple(t.forward_shape(torch.Size((5, 3, 3) if square else (5, 3))))),
            attempt(lambda: tuple(t.inverse_shape(torch.Size((5, 3, 3))))),
            attempt(lambda: str(t.with_cache(1))), attempt(lambda: str(t.inv.with_cache(1))),
        ]  # fmt: skip
        return found

    same_as_pytorch(program, rtol=2e-5, atol=1e-5)


def test_equality() -> None:
    def program(torch: Any) -> Any:
        T = torch.distributions.transforms
        ones = [
            T.ExpTransform(), T.ExpTransform(), T.AffineTransform(0.0, 1.0), T.AffineTransform(0.0, 1.0),
            T.AffineTransform(0.0, 2.0), T.PowerTransform(torch.tensor(2.0)), T.PowerTransform(torch.tensor(2.0)),
            T.ComposeTransform([T.ExpTransform()]), T.ComposeTransform([T.ExpTransform()]), T.ExpTransform().inv,
            T.SigmoidTransform(), T.TanhTransform(), T.SoftmaxTransform(),
        ]  # fmt: skip
        return [[one == other for other in ones] for one in ones]

    same_as_pytorch(program)


def test_cache() -> None:
    d = tinytorch.distributions
    t = d.TanhTransform(cache_size=1)
    x = tinytorch.tensor([20.0])
    assert t.inv(t(x)) is x  # (without a cache it is infinite)
    assert d.TanhTransform().inv(d.TanhTransform()(x)).item() == float("inf")


CONSTRAINTS = """
    c.boolean
    c.one_hot
    c.nonnegative_integer
    c.positive_integer
    c.integer_interval(-2, 1)
    c.real
    c.real_vector
    c.positive
    c.nonnegative
    c.greater_than(0.5)
    c.greater_than_eq(0.5)
    c.less_than(0.5)
    c.multinomial(1)
    c.unit_interval
    c.interval(-1, 2)
    c.half_open_interval(0, 1)
    c.simplex
    c.lower_triangular
    c.lower_cholesky
    c.corr_cholesky
    c.square
    c.symmetric
    c.positive_semidefinite
    c.positive_definite
    c.cat([c.positive, c.real], -1, [1, 1])
    c.stack([c.positive, c.real], -1)
    c.independent(c.positive, 2)
    c.MixtureSameFamilyConstraint(c.positive)
    c.MixtureSameFamilyConstraint(c.simplex)
""".strip().splitlines()


@pytest.mark.parametrize("expression", [each.strip() for each in CONSTRAINTS])
def test_constraints(expression: str) -> None:
    def program(torch: Any) -> Any:
        constraint = eval(expression, {"c": torch.distributions.constraints})
        values = torch.tensor(
            [
                [[1.0, 0.0], [0.0, 1.0]],
                [[0.5, 0.5], [0.5, 0.5]],
                [[1.0, 0.0], [0.6, 0.8]],
                [[2.0, 1.0], [1.0, 3.0]],
                [[-1.0, 0.0], [float("nan"), 0.5]],
                [[1.0, 2.0], [2.0, 1.0]],
            ]
        )
        return [
            str(constraint),
            constraint.event_dim,
            constraint.is_discrete,
            [constraint.check(each) for each in values],
        ]

    same_as_pytorch(program)
