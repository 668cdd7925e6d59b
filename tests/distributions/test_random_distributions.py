"""Random distributions, divergences, transforms and constraints, and random calls on them, run by both libraries.

The programs are lists of lines, see `tests/programs/steps.py`. `WRITERS` has a function for each kind of program;
HYPOTHESIS_PROFILE=long makes 20,000, from a seed that TINYTORCH_SEED sets. Where PyTorch raises or gives wrong numbers:

- divergences of Bernoulli and Wishart distributions whose batches have to be broadcast; gradients of Wishart's;
- `Wishart.mean`, `variance` and `mode` for a number of degrees of freedom and a batch;
- samples of mixtures whose weights have to be broadcast; samples without elements from parameters of two dtypes;
- `GeneralizedPareto` in float64, `Kumaraswamy.mode`, and `entropy` of a `Multinomial` that was expanded;
- gradients of samples of Gamma distributions and what is made of them, which are right to 3 or 4 digits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.nn.test_random_calls import Program
from tests.oracle import needs_oracle
from tests.programs.drawn import RANDOMS, random_programs
from tests.programs.steps import check

pytestmark = needs_oracle

BEGIN = """\
import torch
from torch import distributions as D
from torch.distributions import constraints, transforms as T
def num(*shape, k=0):
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 1.7 + k).reshape(shape)
def pos(*shape, k=0):
    return num(*shape, k=k).abs() * 1.5 + 0.3
def unit(*shape, k=0):
    return num(*shape, k=k) * 0.45 + 0.5
def simplex(*shape, k=0):
    return pos(*shape, k=k) / pos(*shape, k=k).sum(-1, keepdim=True)
def whole(n, *shape, k=0):
    return (num(*shape, k=k).abs() * 97).floor().remainder(n)
def tril(n, *batch):
    return num(*batch, n, n).tril(-1) * 0.5 + torch.diag_embed(pos(*batch, n))
def spd(n, *batch):
    return tril(n, *batch) @ tril(n, *batch).mT
def corr(n, *batch):
    return tril(n, *batch) / tril(n, *batch).norm(dim=-1, keepdim=True)
params = []
def P(t):
    params.append(t.detach().clone().requires_grad_())
    return params[-1]
def both(x):
    if not x.requires_grad:
        return x
    loss = (x * num(*x.shape, k=3).to(x.dtype)).sum()
    return [x, torch.autograd.grad(loss, params, allow_unused=True)]
def about(d):
    return [type(d), d.batch_shape, d.event_shape, d.has_rsample, d.has_enumerate_support, repr(d)]
def facts(c):
    return [repr(c), c.is_discrete, c.event_dim]
"""
TWO = {
    "Normal": "num pos", "LogNormal": "num pos", "Laplace": "num pos", "Cauchy": "num pos", "Gumbel": "num pos",
    "Gamma": "pos pos", "InverseGamma": "pos pos", "Beta": "pos pos", "Weibull": "pos pos", "Pareto": "pos pos",
    "Kumaraswamy": "pos pos", "FisherSnedecor": "pos pos", "VonMises": "num pos", "StudentT": "pos num pos",
    "Exponential": "pos", "HalfNormal": "pos", "HalfCauchy": "pos", "Chi2": "pos", "Poisson": "pos",
}  # fmt: skip
KINDS = (*["simple"] * 4, "chance", "chance", "choice", "choice", "count", "matrix", "matrix", "uniform", "dirichlet",
         "relaxed", "low rank", "lkj", "pareto", "mixture")  # fmt: skip
Shape = Sequence[int]


class Writer:
    """Writes the text of distributions, the parameters of which have one dtype."""

    def __init__(self, p: Program) -> None:
        self.p = p
        self.dtype = p.one("", "", "", ".float()")
        self.numbers = True

    def param(self, kind: str, shape: Shape, k: int, exact: bool = False) -> str:
        """Return a parameter whose shape broadcasts to `shape`; with `exact` it has it."""
        chance = self.p.rng.random()
        if shape and not exact:
            shape = shape[1:] if chance < 0.2 else (1, *shape[1:]) if chance < 0.3 else shape
        sizes = "".join(f"{n}, " for n in shape)
        return f"P({kind}({sizes}k={k}){self.dtype})"

    def number_or(self, kind: str, shape: Shape, k: int) -> str:
        numbers = {"num": ("0.3", "-1.5", "0"), "pos": ("0.5", "2.0", "3"), "unit": ("0.3", "0.9")}
        few = self.numbers and self.p.rng.random() < 0.2
        return str(self.p.one(*numbers[kind])) if few else self.param(kind, shape, k)

    def chances(self, shape: Shape) -> str:
        kind, name = self.p.one(("unit", "probs"), ("num", "logits"))
        return f"{name}={self.number_or(kind, shape, 1)}"

    def weights(self, shape: Shape, exact: bool = False) -> str:
        kind, name = self.p.one(("pos", "probs"), ("num", "logits"))
        return f"{name}={self.param(kind, shape, 1, exact)}"

    def matrix(self, n: int, batch: Shape) -> str:
        how, name = self.p.one(("spd", ""), ("spd", "precision_matrix="), ("tril", "scale_tril="))
        return f"{name}P({how}{(n, *batch)}{self.dtype})"

    def base(self, shape: Shape, *kinds: str) -> str:
        """Return a distribution of one of the kinds."""
        p, n, kind = self.p, self.p.size(1, 3), self.p.one(*(kinds or KINDS))
        checked = p.one("", "", ", validate_args=False", ", validate_args=True")
        if kind == "simple":
            name = p.one(*TWO)
            given = (self.number_or(each, shape, k) for k, each in enumerate(TWO[name].split()))
            return f"D.{name}({', '.join(given)}{checked})"
        if kind == "chance":
            name = p.one("Bernoulli", "Geometric", "ContinuousBernoulli")
            return f"D.{name}({self.chances(shape)}{checked})"
        if kind == "choice":
            name = p.one("Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough")
            return f"D.{name}({self.weights((*shape, n))}{checked})"
        if kind == "count":
            many = p.one("3", "10", "0", f"whole{(6, *shape)}{self.dtype}")
            return str(p.one(
                f"D.Binomial({many}, {self.chances(shape)}{checked})",
                f"D.NegativeBinomial({p.one('2.5', self.param('pos', shape, 2))}, {self.chances(shape)}{checked})",
                f"D.Multinomial({p.one(1, 3, 7, 0)}, {self.weights((*shape, n))}{checked})",
            ))  # fmt: skip
        if kind == "matrix":
            place = self.param("num", (*shape, n), 1, not shape)
            if kinds or p.flag():
                return f"D.MultivariateNormal({place}, {self.matrix(n, shape)}{checked})"
            df = f"torch.tensor({n + p.one(0.5, 1.0, 2.5)}){self.dtype or '.double()'}"
            return f"D.Wishart({df}, {self.matrix(n, shape)}{checked})"
        if kind == "low rank":
            sizes = (*shape, n)
            factor = self.param("num", (*sizes, p.size(1, 2)), 2, True)
            given_ = f"{self.param('num', sizes, 1)}, {factor}, {self.param('pos', sizes, 3, True)}"
            return f"D.LowRankMultivariateNormal({given_}{checked})"
        if kind == "relaxed":
            heat = f"torch.tensor({p.one(0.7, 2.0)}){self.dtype or '.double()'}"
            if p.flag():
                return f"D.RelaxedBernoulli({heat}, {self.chances(shape)}{checked})"
            return f"D.RelaxedOneHotCategorical({heat}, {self.weights((*shape, n + 1))}{checked})"
        if kind == "pareto":
            usual, self.dtype = self.dtype, ".float()"
            last = p.one("0.2", "-0.3", self.param("num", shape, 3))
            given_ = f"{self.param('num', shape, 1)}, {self.param('pos', shape, 2)}, {last}"
            self.dtype = usual
            return f"D.GeneralizedPareto({given_}{checked})"
        if kind == "mixture":
            inner = self.base((*shape, 2), "simple", "matrix", "uniform", "chance")
            return f"D.MixtureSameFamily(D.Categorical({self.weights((*shape, 2), True)}), {inner}{checked})"
        return {
            "uniform": f"D.Uniform({self.number_or('num', shape, 1)}, {self.param('pos', shape, 2)} + 1.2{checked})",
            "dirichlet": f"D.Dirichlet({self.param('pos', (*shape, n + 1), 1)}{checked})",
            "lkj": f"D.LKJCholesky({n + 1}, {self.param('pos', shape, 1)}{checked})",
        }[kind]

    def transform(self, shape: Shape) -> str:
        p = self.p
        steps = f"{self.number_or('num', shape, 7)}, {self.number_or('pos', shape, 8)}"
        return str(p.one(
            "T.ExpTransform()", "T.SigmoidTransform()", "T.TanhTransform()", "T.AbsTransform()",
            "T.SoftplusTransform()", "T.SoftmaxTransform()",
            f"T.AffineTransform({steps}{p.options(event_dim=p.one(0, 1), cache_size=p.one(0, 1))})",
            f"T.PowerTransform({p.one('torch.tensor(2.0)', '0.5', '-1.0', self.param('pos', shape, 9))})",
            "T.StickBreakingTransform()", "T.LowerCholeskyTransform()", "T.PositiveDefiniteTransform()",
            "T.CorrCholeskyTransform()", "T.ExpTransform().inv", "T.SigmoidTransform().inv",
            "T.AffineTransform(1.0, -2)",
            "T.TanhTransform(cache_size=1).inv", "T.StickBreakingTransform().inv", "T.identity_transform",
            "T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.ExpTransform()])", "T.ComposeTransform([])",
            f"T.IndependentTransform(T.ExpTransform(), {p.size(0, 2)})", "T.ReshapeTransform((4,), (2, 2))",
            "T.StackTransform([T.ExpTransform(), T.SigmoidTransform()], dim=-1)", "T.SoftplusTransform(cache_size=1)",
            "T.CatTransform([T.ExpTransform(), T.AffineTransform(1., 2.)], dim=-1, lengths=[1, 1])",
            "T.CumulativeDistributionTransform(D.Normal(0.0, 1.0))",
        ))  # fmt: skip

    def distribution(self) -> str:
        p, shape = self.p, self.p.sizes(self.p.size(0, 2), 1, 3)
        chance = p.rng.random()
        if chance < 0.6:
            return self.base(shape)
        if chance < 0.75:
            return f"D.Independent({self.base(shape)}, {p.size(0, 2)})"
        self.dtype, self.numbers = "", False  # single precision is too little for several steps
        inner = self.base(shape, "simple", "uniform", "matrix")
        several = ", ".join(self.transform(shape) for _ in range(p.often(1, 0, 2, 3)))
        return f"D.TransformedDistribution({inner}, [{several}])"


def value(p: Program) -> str:
    sizes = "".join(f"{n}, " for n in p.one((), (3,), (2, 3), (1,), (2, 1), (2, 2), (4,), (3, 2)))
    return str(p.one(
        f"num({sizes}k=6)", f"pos({sizes}k=6)", f"unit({sizes}k=6)", f"whole(2, {sizes}k=6)", f"whole(4, {sizes}k=6)",
        f"whole(3, {sizes}k=6).long()", f"simplex({sizes or '2, '}k=6)", "torch.tensor(float('nan'))", "tril(2)",
        "torch.tensor(True)", f"pos({sizes}k=2) * 30", f"num({sizes}).float()", "spd(3, 2)", "corr(3)",
    ))  # fmt: skip


def calls(p: Program) -> str:
    """Write a distribution and calls of its methods."""
    writer = Writer(p)
    p.lines += [f"d = {writer.distribution()}", f"seed = torch.manual_seed({p.size(0, 99)})", "about(d)"]
    text = p.lines[0]
    for _ in range(p.size(2, 7)):
        shape = p.one("", "(2,)", "(2, 3)", "()", "torch.Size([3])", "[2]", "(1,)")
        batch = p.one((2,), (2, 3), (3,), (2, 2), (1,), (), (4, 2, 3), (3, 1), (0,))
        lines = [
            [f"d.sample({shape})"], [f"x = d.sample({shape})", "both(d.log_prob(x))"],
            [f"both(d.log_prob({value(p)}))"],
            [f"both(d.{p.one('mean', 'variance', 'stddev', 'mode')})"], [f"both(d.{p.one('entropy', 'perplexity')}())"],
            [f"both(d.cdf({p.one('d.sample()', 'd.sample((2,))', value(p))}))"],
            [f"both(d.icdf(unit({p.one(3, 1)})))"],
            [f"d.enumerate_support({p.one('', 'expand=False')})"], ["facts(d.support)", "d.support.check(d.sample())"],
            ["{name: facts(each) for name, each in d.arg_constraints.items()}"], [f"d.sample({p.one('(-1,)', '2.5')})"],
            [f"d.{p.one('probs', 'logits', 'covariance_matrix', 'precision_matrix', 'loc', 'df', 'rate')}"],
        ]  # fmt: skip
        if "Wishart" not in text:
            lines += [[f"both(d.rsample({shape}))"]] * 2
        if "Multinomial" not in text and "Wishart" not in text:
            lines += [[f"d = d.expand({batch})", "about(d)"]]
        if "Kumaraswamy" in text:
            lines = [each for each in lines if "mode" not in each[0]]
        p.lines += p.one(*lines)
    return BEGIN


def divergence(p: Program) -> str:
    """Write two distributions, at times of one class, and their divergences."""
    writer, shape = Writer(p), p.sizes(p.size(0, 2), 1, 3)
    a, b = writer.base(shape), writer.base(shape)
    for _ in range(0 if p.rng.random() < 0.2 else 300):
        if b.split("(")[0] == a.split("(")[0]:
            break
        b = writer.base(shape if p.flag() else shape[1:])
    if "D.Bernoulli" in a + b:
        a, b = (f"D.Bernoulli({writer.weights(shape, True)} * 0.5)" for _ in range(2))
        a, b = (a.replace("num", "unit").replace("pos", "unit"), b.replace("num", "unit").replace("pos", "unit"))
    if "Wishart" in a + b:
        a, b = (f"D.Wishart(torch.tensor(3.5), P({each}))" for each in ("spd(2)", "spd(2) * 2"))
    if p.rng.random() < 0.2:
        n, m = p.size(0, 2), p.size(0, 2)
        a, b = f"D.Independent({a}, {n})", f"D.Independent({b}, {p.often(n, m)})"
    elif p.rng.random() < 0.1:
        step = writer.transform(shape)
        a, b = (f"D.TransformedDistribution({each}, [{step}])" for each in (a, b))
    shown = "D.kl_divergence({}, {}).detach()" if "Wishart" in a else "both(D.kl_divergence({}, {}))"
    p.lines += [f"a = {a}", f"b = {b}", shown.format("a", "b"), shown.format("b", "a")]
    return BEGIN


def transform(p: Program) -> str:
    """Write a transform and what it does with values."""
    p.lines += [f"t = {Writer(p).transform(p.sizes(p.size(0, 2), 1, 3))}"]
    p.lines += ["[t.bijective, facts(t.domain), facts(t.codomain), repr(t)]"]
    for _ in range(p.size(1, 3)):
        shape = p.one((3,), (2,), (3, 2), (2, 2), (3, 3), (1,), (), (2, 3, 3), (6,))
        kind = p.one("num", "pos", "unit")
        p.lines += [
            f"x = {p.one(f'P({kind}{shape})', 'tril(2)', 'corr(3)', 'spd(3, 2)', 'simplex(3)')}", "y = t(x)", "both(y)",
            "both(t.log_abs_det_jacobian(x, y))", "both(t.inv(y))", "both(t.inv(x))", f"t.forward_shape({shape})",
            f"t.inverse_shape({p.one(shape, (2, 4), (3, 3))})", "t.sign", "t == t", "t.inv.inv is t", "repr(t.inv)",
            "t.with_cache(1)(x)", "t.inv.log_abs_det_jacobian(y, x)",
        ]  # fmt: skip
    return BEGIN


CONSTRAINTS = """boolean dependent lower_cholesky lower_triangular nonnegative nonnegative_integer one_hot positive
positive_definite positive_integer positive_semidefinite real real_vector simplex square symmetric unit_interval
greater_than(0.5) greater_than_eq(pos(2)) less_than(0.5) interval(-1,0.5) half_open_interval(0,1) integer_interval(0,3)
multinomial(3) independent(C.positive,1) independent(C.real,2) stack([C.real,C.positive],-1) independent(C.simplex,0)
cat([C.real,C.positive],-1,[1,1]) MixtureSameFamilyConstraint(C.unit_interval)
MixtureSameFamilyConstraint(C.simplex) MixtureSameFamilyConstraint(C.interval(num(2),pos(2)+1))"""


def constraint(p: Program) -> str:
    """Write a constraint, values to check and the transforms to it."""
    p.lines += ["C = constraints", f"c = C.{p.one(*CONSTRAINTS.split())}", "facts(c)"]
    p.lines += [f"c.check({value(p)})" for _ in range(4)]
    p.lines += ["t = D.biject_to(c)", "t(num(3))", "t.inv(t(num(3)))", "t = D.transform_to(c)", "t(num(6))"]
    p.lines += ["t(num(2, 3, 3))", "t.codomain.check(t(num(3)))"]
    return BEGIN


WRITERS: list[Callable[[Program], str]] = [calls, calls, calls, divergence, transform, constraint]
IMPLICIT = ("Gamma", "Beta", "Dirichlet", "Chi2", "StudentT", "Fisher", "LKJ")


def tolerance_of(lines: list[str]) -> Callable[[str], float]:
    """Return the tolerance of each line: of single precision, and of PyTorch's gradients of samples."""
    text = "\n".join(lines)
    least = 1e-3 if ".float()" in text or "Continuous" in text else 1e-6
    implicit = any(name in text for name in IMPLICIT)
    return lambda line: 1e-2 if implicit and "rsample" in line else least


@random_programs(150, st.sampled_from(WRITERS), RANDOMS)
def test_random_distributions_agree(write: Callable[[Program], str], rng: random.Random) -> None:
    p = Program(rng)
    begin = write(p)
    check(begin, p.lines, tolerance_of(p.lines))
