"""Random calls, with random options, of what `test_random_calls.py` leaves out: linalg, scattering …

A call is the text of a small program, so that a failure shows one that can be run. `CALLS` has a function for each
family, which makes tensors and takes a line of its table: `[, name=a|b]` is an option that is left out at times,
`<a|b>` a choice, and a word in braces is something that the function writes. HYPOTHESIS_PROFILE=long makes 20,000.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.nn.test_random_calls import Program as Base
from tests.nn.test_random_calls import outcome
from tests.oracle import needs_oracle
from tests.programs.drawn import RANDOMS, difference, random_programs
from tests.same import expressions

pytestmark = needs_oracle

BEGIN = """\
import torch
def numbers(k, *shape):
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(n * n * 0.37 + n * 1.7 + k).reshape(shape)
torch.manual_seed(0)
"""
FLOATS = ("float64", "float32", "bfloat16", "float16")
WHOLES = ("int64", "int32", "uint8", "int8", "int16", "bool")


class Lazy(dict[str, Any]):
    """What the words in braces stand for; what is a function is called for each."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return value() if callable(value) else value


class Program(Base):
    def dtype(self) -> str:
        return str(self.one("float64", "float32", self.one("float64", *FLOATS), self.one("int64", *WHOLES)))

    def shape(self, count: int | None = None) -> tuple[int, ...]:
        count = self.size(0, 4) if count is None else count
        return tuple(self.one(1, 2, 3, 4, 5, self.one(0, 2)) for _ in range(count))

    def lead(self, empty: bool = True) -> tuple[int, ...]:
        """Return the dimensions of a stack of matrices."""
        return tuple(self.often((), (2,), (1,), (2, 1), (2, 3), (0,) if empty else (3,)))

    def tensor(
        self, shape: Sequence[int], change: str = "", grad: bool = True, dtype: str = "float64", scale: float = 1,
        distinct: bool = False,
    ) -> str:  # fmt: skip
        """Write a line that makes a tensor, and return it in some layout; `distinct`: no element twice in memory."""
        shape = tuple(shape)
        name = f"t{len(self.lines)}"
        layout = self.often("plain", "turned", "steps", "part", "expanded")
        base, view = shape, ""
        if layout == "turned" and len(shape) > 1:
            base, view = shape[::-1], f".permute({', '.join(map(str, range(len(shape))[::-1]))})"
        elif layout == "steps" and shape:
            base, view = (*shape[:-1], shape[-1] * 2), "[..., ::2]"
        elif layout == "part" and shape:
            base, view = (shape[0] + 1, *shape[1:]), "[1:]"
        elif layout == "expanded" and len(shape) > 1 and not distinct:
            base, view = (1, *shape[1:]), f".expand({', '.join(map(str, shape))})"
        text = f"numbers({', '.join(map(str, (len(self.lines) + 1, *base)))})"
        text += f".mul({scale})" if scale != 1 else ""
        text += ".abs()" if dtype == "uint8" else ""
        text += ".mul(4).round()" if dtype not in FLOATS else ""
        text += f".to(torch.{dtype})" if dtype != "float64" else ""
        text += change
        if grad and not change and dtype in ("float32", "float64"):
            text += ".requires_grad_()"
            self.leaves.append(name)
        self.lines.append(f"{name} = {text}")
        return f"{name}{view}"

    def any(self, shape: Sequence[int], change: str = "", scale: float = 1) -> str:
        """Return a tensor of any dtype."""
        return self.tensor(shape, change, self.size(0, 3) == 0, self.dtype(), scale)

    def index(self, shape: Sequence[int], end: int, kind: str = "long") -> str:
        return self.tensor(shape, f".mul(97).{kind}().abs().remainder({max(end, 1)})", grad=False)

    def name(self, value: str) -> str:
        """Write a line that gives a value a name."""
        self.lines.append(f"n{len(self.lines)} = {value}")
        return f"n{len(self.lines) - 1}"

    def matrix(self, rows: int, columns: int, lead: Sequence[int], dtype: str = "float64") -> str:
        return self.tensor((*lead, rows, columns), dtype=dtype, distinct=True)

    def dim(self, count: int) -> int:
        """Return a dimension, now and then one that is out of range."""
        count = max(count, 1)
        return self.rng.randrange(-count - (self.rng.random() < 0.04), count + (self.rng.random() < 0.04))

    def dims(self, count: int) -> Any:
        return self.one(self.dim(count), tuple(self.dim(count) for _ in range(self.size(0, 2))), None)

    def choice(self, table: str, count: int = 0, /, **words: Any) -> str:
        """Return one line of a table, its options and choices made; `count` is that of the dimensions."""
        line = self.one(*expressions(table))
        line = re.sub(r"\[, ([^\[\]]*)\]", lambda m: f"<, {m[1]}|>" if self.flag() else "", line)
        line = re.sub(r"<, (\w+=)([^<>]*)\|>", lambda m: f", {m[1]}{self.one(*m[2].split('|'))}", line)
        line = re.sub(r"<([^<>]+)>", lambda m: self.one(*m[1].split("|")), line)
        usual = {
            "flag": self.flag, "dim": lambda: self.dim(count), "dims": lambda: self.dims(count),
            "dt": lambda: f"torch.{self.dtype()}",
        }  # fmt: skip
        return line.format_map(Lazy(usual, **words))


# Linear algebra ---------------------------------------------------------------------------------------


def decomposition(p: Program) -> str:
    """Return what is unique: products of the factors, and a function of the singular values."""
    m, n = p.size(0, 5), p.size(0, 5)
    k = min(m, n)
    x = p.matrix(m, n, p.lead())
    call, both = p.choice(
        """
        torch.linalg.svd({x}[, full_matrices={flag}]) # [A[..., :{k}] * B.sin()[..., None, :] @ C[..., :{k}, :], B]
        torch.svd({x}[, some={flag}][, compute_uv=True|False]) # [A[..., :{k}] * B[..., None, :] @ C[..., :{k}].mT, B]
        (*torch.linalg.qr({x}[, mode='reduced'|'complete'|'r'|'x']), 0) # [A, B]
        torch.linalg.lu({x}[, pivot=True]) # [A, B, C]; (torch.linalg.svdvals({x}), *torch.geqrf({x})) # [A, B, C]
        torch.lu({x}, get_infos=True) # [A, B, C, *torch.lu_unpack(A, B[, unpack_pivots={flag}])]
        """,
        x=x, k=k,
    ).split("#")  # fmt: skip
    p.lines.append(f"A, B, C = {call}")
    return both


def hermitian(p: Program) -> str:
    n = p.size(0, 5)
    x = p.name(p.matrix(n, n, p.lead()))
    p.lines.append(f"L, Q = torch.linalg.eigh({x}{p.options(UPLO=p.one('L', 'U', 'l', 'u', 'X'))})")
    y = p.name(f"{x} @ {x}.mT" + p.often(f" + torch.eye({n}, dtype={x}.dtype)", "", " - 0.1"))
    return p.choice(
        """
        [L, (Q * L.sin()[..., None, :]) @ Q.mT]; torch.linalg.eigvalsh({x}[, UPLO='L'|'U'])
        torch.linalg.cholesky({y}[, upper={flag}])
        [*torch.linalg.cholesky_ex({y}[, upper={flag}][, check_errors={flag}])]; torch.cholesky({y}, {flag})
        torch.cholesky_solve({b}, torch.linalg.cholesky({y}[, upper={flag}]).<tril()|triu(), upper=True>)
        torch.cholesky_inverse(torch.linalg.cholesky({y}[, upper={flag}]).<tril()|triu(), upper=True>)
        [*torch.linalg.ldl_factor_ex({y}.detach()[, hermitian={flag}])][1:]
        torch.linalg.ldl_solve(*torch.linalg.ldl_factor({y}.detach()), {b}.expand({y}[..., :1].shape))
        """,
        x=x, y=y, b=lambda: p.tensor((n, 1)),
    )  # fmt: skip


def inverse(p: Program) -> str:
    n = p.size(0, 4)
    lead = p.lead()
    x = p.matrix(n, p.often(n, n, n, n + 1), lead, p.often("float64", "float32"))
    x = p.name(f"{x} + 2 * torch.eye({n})")
    shape = p.one((n,), (*lead, n), (*lead, n, p.size(0, 3)), (*lead, p.size(0, 3), n))
    return p.choice(
        """
        torch.linalg.inv({x}); [*torch.linalg.inv_ex({x}[, check_errors={flag}])]
        <torch.linalg.det|torch.logdet|torch.linalg.matrix_exp>({x}); [*torch.linalg.slogdet({x})]
        torch.linalg.solve({x}, {b}[, left={flag}])
        [*torch.linalg.solve_ex({x}, {b}[, left={flag}][, check_errors={flag}])]
        torch.linalg.matrix_power({x}, <-2|-1|0|1|3|5>); [*torch.linalg.lu_factor_ex({x}[, check_errors={flag}])]
        torch.linalg.lu_solve(*torch.linalg.lu_factor({x}), {b}[, left={flag}][, adjoint={flag}])
        torch.lu_solve({b}, *torch.linalg.lu_factor({x}))
        torch.linalg.solve_triangular({x}, {b}, upper={flag}[, left={flag}][, unitriangular={flag}])
        [*torch.triangular_solve({b}, {x}[, upper={flag}][, transpose={flag}][, unitriangular={flag}])]
        """,
        x=x, b=lambda: f"{p.tensor(shape)}.to({x}.dtype)",
    )  # fmt: skip


def low_rank(p: Program) -> str:
    m, n, rank = p.size(1, 5), p.size(1, 5), p.often(None, 1, 2)
    lead = p.lead(empty=False)
    x = p.matrix(m, n, lead) if rank is None else f"({p.matrix(m, rank, lead)} @ {p.matrix(rank, n, lead)})"
    x = p.name(x)
    bound = p.one("0.001", "0.1", "0.5")
    right = (*p.often(lead, (1,) * len(lead)), m, *p.often((p.size(1, 3),), ()))
    which = f"{x} @ {x}.mT, hermitian=True" if p.flag() else x
    return p.choice(
        """
        [*torch.linalg.lstsq({x}, {b}[, rcond=0.0001|1e-06]{driver})][:4]
        [*torch.linalg.lstsq({x}, {b}, driver=<'gelsd'|'gelss'|'x'>)]
        torch.linalg.pinv({which}[, atol={e}|torch.tensor({e})][, rtol={e}|torch.tensor({e})])
        torch.linalg.pinv({which}[, rcond={e}]); torch.pinverse({x}[, rcond={e}])
        torch.linalg.matrix_rank({which}[, atol={e}|torch.tensor({e})][, rtol={e}])
        torch.linalg.matrix_rank({which}, tol={e})
        torch.linalg.cond({regular}[, p=1|-1|2|-2|torch.inf|-torch.inf|'fro'|'nuc'|3])
        """,
        x=x, e=bound, which=which, b=lambda: p.tensor(right),
        driver=", driver='gels'" if rank is None and p.flag() else "",
        regular=f"({x} @ {x}.mT + torch.eye({m})).detach()",
    )  # fmt: skip


def norms(p: Program) -> str:
    shape = p.shape()
    n = len(shape)
    x = p.tensor(shape, dtype=p.one("float64", "float64", *FLOATS, "int64"))
    pair = (p.dim(n), p.dim(n))
    return p.choice(
        """
        torch.linalg.vector_norm({x}[, ord={p}][, dim={dims}][, keepdim={flag}][, dtype={dt}])
        torch.linalg.matrix_norm({x}[, ord={m}][, dim={pair}][, keepdim={flag}][, dtype={dt}])
        torch.linalg.norm({x}[, ord={p}|{m}|None][, dim={dims}|{pair}][, keepdim={flag}][, dtype={dt}])
        torch.norm({x}[, p={p}|'fro'|'nuc'][, dim={dims}|{pair}][, keepdim={flag}][, dtype={dt}])
        torch.renorm({x}, <1|2|0.5|3.0>, {dim}, <0.5|1|0>); torch.frobenius_norm({x}, {pair}[, keepdim={flag}])
        torch.nuclear_norm({x}[, dim={pair}]); torch.dist({x}, {x}.mul(2), {p})
        """,
        n, x=x, pair=pair, p=lambda: p.one(0, 1, 2, -1, -2, 3, 0.5, 2.5, "torch.inf", "-torch.inf"),
        m=lambda: p.one(1, -1, 2, -2, 3, "torch.inf", "-torch.inf", "'fro'", "'nuc'", "'x'"),
    )  # fmt: skip


def product(p: Program) -> str:
    a, b, c, e = (p.size(int(k == 0), 4) for k in range(4))  # (what `addmv` to no rows gives is PyTorch's own)
    lead, other = p.lead(empty=False), p.often(p.shape(p.size(1, 3)), (3,))
    d = p.often("float64", "float32", "int64", "bfloat16")

    def t(*shape: int) -> Callable[[], str]:
        return lambda: p.tensor(shape, dtype=d)

    kind = p.one("cdist", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    return p.choice(
        """
        torch.linalg.multi_dot([{ab}, {bc}, {ce}]); torch.linalg.multi_dot([{vb}, {bc}, {vc}])
        torch.chain_matmul({ab}, {bc}, {ce}); torch.linalg.cross({v3}, {v3}[, dim=-2|{dim}])
        torch.cross({v3}, {v3}[, dim=-2|{dim}|None]); torch.linalg.vecdot({v3}, {v3}[, dim={dim}])
        torch.kron({v}, {v}); torch.linalg.vander({v}[, N=0|1|2|4|None])
        torch.vander({vb}.detach()[, N=0|1|3][, increasing={flag}]); torch.cov(<{ab}|{vb}>[, correction=0|1|2])
        torch.corrcoef(<{ab}|{vb}>)
        torch.cdist({batch}, {batch}[, p=0.0|1.0|2.0|3.0|0.5|torch.inf][, compute_mode='{kind}'])
        torch.inner({ab}, {cb}); torch.addbmm({ac}, {two_ab}, {two_bc}[, beta=0|2][, alpha=0|3])
        torch.addmv({va}, {ab}, {vb}[, beta=0|2][, alpha=0|3])
        torch.addr(<{ab}|{vb}>, {va}, {vb}[, beta=0|2|0.5|True][, alpha=0|3|1.5])
        torch.linalg.diagonal({v3}[, offset=-1|0|1|2][, dim1={dim}][, dim2={dim}])
        torch.linalg.tensorinv({six}, <1|2>)
        torch.linalg.tensorsolve({six}, {two_three}[, dims=None|(1,)|(0, 2)|(2,)])
        torch.tensordot({abc}, {cba}, dims=<([1, 2], [1, 0])|([2], [0])|([-1], [-3])|1|0|2|([], [])>)
        torch.linalg.householder_product({v42}, {v2})
        torch.ormqr({v43}, {v3d}, {v44}[, left={flag}][, transpose={flag}]); torch.block_diag({full}, {full}, {full})
        torch.cartesian_prod({va}, {vb}); torch.combinations({vb}[, r=0|1|2|3|4][, with_replacement={flag}])
        """,
        len(lead) + 2, ab=t(a, b), bc=t(b, c), ce=t(c, e), va=t(max(a, 1)), vb=t(b), vc=t(c), cb=t(c, b), ac=t(a, c),
        v3=t(*lead, 3, 2), v=t(*other), batch=t(*lead, a, b), two_ab=t(2, a, b), two_bc=t(2, b, c), six=t(2, 3, 6),
        two_three=t(2, 3), abc=t(a, b, c), cba=t(c, b, a), v42=t(*lead, 4, 2), v2=t(*lead, 2), v43=t(4, 3), v3d=t(3),
        v44=t(4, 4), full=lambda: p.any(p.sizes(p.size(0, 2), 1, 3)), kind=kind,
    )  # fmt: skip


def einsum(p: Program) -> str:
    letters = p.rng.sample("abcdeXY", 4)
    sizes = {each: p.one(1, 2, 3, 3, 4, 0) for each in letters}
    more, dotted = p.shape(p.size(0, 2)), p.rng.random() < 0.4
    d = p.often("float64", "float32", "int64", "float16")
    terms, names = [], []
    for _ in range(p.size(1, 3)):
        term = [p.one(*letters) for _ in range(p.size(0, 3))]
        shape = [1 if p.rng.random() < 0.1 else sizes[each] for each in term]
        if dotted and p.rng.random() < 0.8:
            at = p.size(0, len(term))
            shape[at:at] = [1 if p.rng.random() < 0.2 else n for n in more[p.one(0, len(more)) :]]
            term[at:at] = ["..."]
        terms.append(term)
        names.append(p.tensor(shape, dtype=d))
    out: list[str] | None = None
    if p.rng.random() < 0.7:
        kinds = sorted({each for term in terms for each in term} - {"..."})
        out = p.rng.sample(kinds, p.size(0, len(kinds)))
        if dotted and p.rng.random() < 0.9:
            at = p.size(0, len(out))
            out[at:at] = ["..."]
    if p.rng.random() < 0.3:

        def sublist(term: list[str]) -> str:
            return f"[{', '.join('...' if each == '...' else str(ord(each) % 52) for each in term)}]"

        args = [f"{name}, {sublist(term)}" for name, term in zip(names, terms, strict=True)]
        return f"torch.einsum({', '.join(args)}{'' if out is None else ', ' + sublist(out)})"
    space = p.often("", " ")
    equation = f",{space}".join("".join(term) for term in terms)
    equation += "" if out is None else f"{space}->{space}{''.join(out)}"
    given = ", ".join(names)
    return f"torch.einsum({equation!r}, {p.one(given, f'[{given}]')})"


# Pointwise, reductions, statistics ----------------------------------------------------------------------

UNARY = (
    "<abs|acos|angle|asin|asinh|atan|bitwise_not|ceil|cos|cosh|deg2rad|erf|erfc|exp|exp2|expm1|floor|frac|isfinite|"
    "isneginf|isposinf|log|log10|log1p|log2|logical_not|logit|neg|positive|reciprocal|round|rsqrt|sgn|sigmoid|sign|"
    "signbit|sin|sinc|sinh|sqrt|square|tan|tanh|trunc>"
)
BINARY = (
    "<add|sub|mul|div|floor_divide|remainder|fmod|pow|atan2|copysign|maximum|minimum|fmax|fmin|eq|ne|lt|ge|logical_and|"
    "logical_xor|bitwise_and|bitwise_or|bitwise_xor|hypot|logaddexp|logaddexp2|xlogy|float_power|heaviside|nextafter|"
    "gcd|lcm>"
)


def pointwise(p: Program) -> str:
    shape = p.shape()
    x = p.any(shape, scale=p.one(1, 3))
    like = p.one(p.any(p.often(shape, shape[1:], p.shape(len(shape)))), "2", "0.5", "True", "-1", "0")
    return p.choice(
        f"""
        torch.{UNARY}({{x}}); torch.{BINARY}({{x}}, {{y}}); torch.{BINARY}({{x}}, {{y}})
        torch.<add|sub>({{x}}, {{y}}, alpha=<2|0.5|True|-1>)
        torch.div({{x}}, {{y}}, rounding_mode=<None|'floor'|'trunc'|'x'>); torch.float_power(<2|2.5>, {{x}})
        torch.<bitwise_left_shift|bitwise_right_shift>({{x}}, <1|2|{{small}}>)
        {{x}} {p.one("<<", ">>", "&", "|", "^")} <1|2|True|1.5|{{small}}>
        <3|1|True|2.5> {p.one("<<", ">>", "&", "|", "^", "//", "%", "**", "-", "/")} {{small}}
        torch.isclose({{x}}, {{z}}[, rtol=0.0|0.5|2|-1.0][, atol=0.0|0.3][, equal_nan={{flag}}])
        torch.nan_to_num({{x}}.log()[, nan=None|1.5][, posinf=None|3|0.5][, neginf=None|-9.0])
        """.replace("<<", "LEFT").replace(" | ", " OR "),
        x=x, y=like, z=f"{x} + 0", small=lambda: p.any(p.often(shape, shape[1:]), ".abs()"),
    ).replace("LEFT", "<<").replace(" OR ", " | ")  # fmt: skip


def reduction(p: Program) -> str:
    shape = p.shape()
    n = len(shape)
    some = p.one(p.dim(n), (p.dim(n), p.dim(n)), (p.dim(n),), "None")
    return p.choice(
        """
        torch.<sum|mean|nansum|nanmean>({x}[, dtype={dt}|None])
        torch.<sum|mean|nansum|nanmean>({x}, {some}[, keepdim={flag}][, dtype={dt}|None])
        torch.prod({x}, {dim}[, keepdim={flag}][, dtype={dt}])
        torch.<amax|amin|all|any>({x}, {some}[, keepdim={flag}]); [*torch.aminmax({x}[, dim={dim}][, keepdim={flag}])]
        torch.logsumexp({x}, <{dim}|({dim}, {dim})>[, keepdim={flag}])
        torch.<max|min|median|nanmedian>({x}.contiguous(), {dim}[, keepdim={flag}])[0]
        {x}.sum_to_size(<{shape}|{ones}|{less}>); torch.<softmax|log_softmax|cumsum|cumprod>({x}, {dim}[, dtype={dt}])
        torch.<cummax|cummin>({x}, {dim})[0]; torch.<var|std>({x}, {some}[, correction=0|1|2|3.5][, keepdim={flag}])
        [*torch.<std_mean|var_mean>({x}[, dim={some}][, keepdim={flag}][, correction=0|1|0.5])]
        torch.count_nonzero({x}[, dim={dims}])
        """,
        n, x=p.tensor(shape, "", p.flag(), p.dtype()), some=some, shape=shape, ones=(1,) * n, less=shape[1:],
    )  # fmt: skip


def statistics(p: Program) -> str:
    shape = p.shape()
    n = len(shape)
    d = p.often(p.one(*FLOATS), p.dtype())
    x = p.tensor(shape, "", p.flag(), d)
    q = f"dtype=torch.{d if d in FLOATS else 'float32'}"
    return p.choice(
        """
        torch.<quantile|nanquantile>({x}, {q}[, dim={dim}|None][, keepdim={flag}]{how})
        torch.<quantile|nanquantile>({x}, {q}[, dim={dim}|None][, keepdim={flag}]{how})
        torch.histc({x}[, bins=1|3|7|0][, min=-1|0|0.3][, max=1|2|0])
        [*torch.histogram({real}, <1|3|5|torch.tensor((-1., 0., 0.5, 2.), dtype=torch.float64)>[, density={flag}])]
        [*torch.histogram({real}, <1|3|5>[, range=(-1.0, 0.5)][, density={flag}][, weight={real}])]
        [*torch.histogramdd({pairs}, <(2, 3)|2|(1, 1)>[, density={flag}][, range=None|(-1.0, 1.0, -0.5, 0.5)])]
        torch.bincount({whole}[, minlength=0|3|9|-1])
        torch.bincount(torch.tensor((1, 3, 3, 0)), {four}[, minlength=0|9])
        torch.<trapezoid|cumulative_trapezoid>({x}[, dx=1|0.5|2][, dim={dim}])
        torch.<trapezoid|cumulative_trapezoid>({x}, <{like}|{last}>[, dim=-1|{dim}])
        torch.gradient({x}[, spacing=1|0.5|2.0][, dim={dim}|({dim}, {dim})][, edge_order=1|2])
        torch.gradient({x}, spacing={places}[, edge_order=1|2])
        torch.diff({x}[, n=0|1|2|3|-1][, dim={dim}][, prepend={like}][, append={like}|{last}])
        torch.kthvalue({x}, <0|1|2|3>[, dim={dim}][, keepdim={flag}])[0]
        torch.mode({x}[, dim={dim}][, keepdim={flag}])[0]
        """,
        n, x=x, how=p.options(interpolation=p.one("linear", "lower", "higher", "nearest", "midpoint", "x")),
        q=p.one("0.3", "0.0", "1.0", f"torch.tensor([0.1, 0.9, 0.5], {q})", f"torch.tensor([], {q})", "1.5"),
        real=lambda: p.tensor(shape, grad=False), pairs=lambda: p.tensor((*shape[:2], 2), grad=False),
        whole=lambda: p.tensor(p.shape(p.often(1, 2)), ".abs()", dtype=p.one("int64", "uint8", "int32", "float32")),
        four=lambda: p.tensor((p.often(4, 3),), dtype=d, grad=False), like=lambda: p.tensor(shape, dtype=d),
        last=lambda: p.tensor(shape[-1:], dtype=d),
        places="(" + "".join(f"torch.arange({size}) ** 2.0, " for size in shape) + ")",
    )  # fmt: skip


# Places: search, order, scatter, write ------------------------------------------------------------------


def search(p: Program) -> str:
    shape = p.shape()
    n = len(shape)
    d = p.dtype()
    x = p.tensor(shape, "", False, d)
    edges = p.name(p.tensor((p.size(0, 5),), "", False, p.often(d, "float32")))
    rows = p.name(p.tensor((*shape[:-1], p.size(1, 4)), "", False, d))
    return p.choice(
        """
        torch.bucketize(<{x}|0.5|1>, {edges}.sort()[0][, right={flag}][, out_int32={flag}])
        torch.searchsorted({edges}.sort()[0], <{x}|0.5|2>[, side='left'|'right'|'x'][, right={flag}])
        torch.searchsorted({rows}.sort(-1)[0], {x}[, side='left'|'right'][, out_int32={flag}])
        torch.searchsorted({rows}, {x}, sorter={rows}.argsort(-1)[, right={flag}])
        torch.unique({x}[, return_inverse={flag}][, return_counts={flag}][, dim={dim}|None])
        torch.unique_consecutive({x}[, return_inverse={flag}][, return_counts={flag}][, dim={dim}|None])
        torch.isin(<{x}|1>, {edges}[, invert={flag}])
        torch.isin({x}, <2|0.5|True>[, assume_unique=False][, invert={flag}])
        torch.roll({x}, <1|-2|0|(1, 2)|(3,)>[, dims={dim}|({dim}, {dim})|None])
        torch.rot90({x}[, k=-2|-1|0|1|5][, dims=(0, 1)|(1, 0)|({dim}, {dim})])
        torch.flip({x}, <({dim},)|({dim}, {dim})|()>); torch.nonzero({x}[, as_tuple={flag}])
        torch.topk({x}, <1|2|3>[, dim={dim}][, largest={flag}])[0]
        torch.sort({x}, stable=True[, dim={dim}][, descending={flag}])
        """,
        n, x=x, edges=edges, rows=rows,
    )  # fmt: skip


def scatter(p: Program) -> str:
    shape = list(p.shape(p.often(p.size(1, 3), 0)))
    n = len(shape)
    dim = p.dim(n)
    at, size = dim % max(n, 1), 0
    part, wide, count = list(shape), list(shape), p.size(0, 4)
    if n:
        size = shape[at]
        wide[at], part[at] = p.size(0, 4), min(count, size)
        wide = [min(s, p.size(1, 5)) if k != at else s for k, s in enumerate(wide)]
    d = p.often(p.one(*FLOATS), p.dtype())
    total = p.rng.choice([1, 6])
    rows = [count if n and k == at else s for k, s in enumerate(shape)]

    def t(*shape: int, dtype: str = d) -> Callable[[], str]:
        return lambda: p.tensor(shape, dtype=dtype, distinct=True)

    form = p.often("", "_")
    x = p.tensor(shape, dtype=d, distinct=True)
    return p.choice(
        """
        {y}.scatter_reduce{form}({at}, {index}, {src}, <'sum'|'prod'|'mean'|'amax'|'x'>[, include_self={flag}])
        {y}.scatter_reduce{form}({at}, {index}, {src}, <'sum'|'prod'|'mean'|'amin'>[, include_self={flag}])
        {y}.index_reduce{form}({at}, {places}, {rows}, <'prod'|'mean'|'amax'|'amin'|'x'>[, include_self={flag}])
        {y}.detach().scatter({at}, {index}, <2|0.5|{src}.detach()>, reduce=<'add'|'multiply'|'x'>)
        {y}.scatter_add{form}({at}, {index}, {src}); {y}.index_add{form}({at}, {places}, {rows}[, alpha=0|2|-1|0.5])
        {y}.index_copy{form}({at}, torch.arange({size})[:{count}], {part})
        {y}.index_fill{form}({at}, {long}, <1|0.5|torch.tensor(2)|torch.tensor((2,))>)
        ({x}).clone().put_({flat}, {ten}, accumulate=True); torch.take({x}, {flat})
        {y}.masked_scatter{form}({mask}, {many}); torch.<gather|take_along_dim>({x}.detach(), {at}, {index})
        torch.take_along_dim({x}, {index}, dim={at}); torch.index_select({x}, {at}, {places})
        ({x}).clone().fill_diagonal_(<1|0.5>[, wrap={flag}])
        torch.slice_scatter({x}, {part}, {at}[, start=0|None][, end={count}|-1][, step=1|2])
        torch.select_scatter({x}, {less}, {at}, 0)
        """,
        n, x=x, y=f"({x}).clone()" if form else f"({x})", form=form, at=dim, size=size, count=count, part=t(*part),
        index=lambda: p.index(wide, size), src=t(*wide, dtype=p.often(d, d, p.dtype())), rows=t(*rows),
        places=lambda: p.index((count,), size, p.often("long", "int")), long=lambda: p.index((count,), size),
        flat=lambda: p.index((count,), total if n else 1), ten=t(count), many=t(120),
        less=t(*shape[:at], *shape[at + 1 :]), mask=lambda: p.tensor(p.often(shape, shape[1:], (1,) * n), " > 0"),
    )  # fmt: skip


def creation(p: Program) -> str:
    def number() -> str:
        return str(p.one(0, 1, -2, 5, 2.5, -0.5, 7, True, "torch.tensor(3)", "torch.tensor(1.5)"))

    return p.choice(
        """
        torch.arange({a}[, dtype={dt}]); torch.arange({a}, {a}[, dtype={dt}])
        torch.arange({a}, {a}, <1|2|-1|0.5|-0.3|0>[, dtype={dt}]); torch.linspace({a}, {a}, <0|1|2|5|8>[, dtype={dt}])
        torch.logspace({a}, {a}, <0|1|2|5>[, base=2|10.0|0.5][, dtype={dt}]); torch.full({shape}, {a}[, dtype={dt}])
        torch.eye({n}[, m={n}][, dtype={dt}])
        torch.<tril_indices|triu_indices>({n}, {n}[, offset=-2|-1|1|2][, dtype={dt}])
        torch.full_like({x}, {a}[, dtype={dt}]); {x}.new_full({shape}, {a}[, dtype={dt}])
        {x}.new_tensor(<1|2.5|(1, 2)|(True,)|()>[, dtype={dt}])
        torch.tensor(<1|2.5|(1, 2)|((True,),)|()|(1.5, 2)|(True, 2)>[, dtype={dt}])
        torch.scalar_tensor({a}[, dtype={dt}])
        """,
        a=number, n=lambda: p.size(0, 4), shape=p.shape(), x=lambda: p.tensor(p.shape(), "", False, p.dtype()),
    )  # fmt: skip


def into(p: Program) -> str:
    """Return a call that writes: in place, or into `out` of the right or another dtype, shape and layout."""
    shape = p.shape()
    n = len(shape)
    d, e = p.dtype(), p.dtype()

    def like() -> str:
        return str(p.tensor(p.often(shape, shape[1:], p.shape(n)), "", False, p.often(d, e)))

    x = p.name(p.tensor(shape, "", False, d, distinct=True))
    table = f"""
        {UNARY}; {BINARY}, {{y}}; {BINARY}, {{y}}; <add|sub>, {{y}}, alpha=<2|0.5|True>
        div, {{y}}, rounding_mode=<None|'floor'|'trunc'>; <addcmul|addcdiv>, {{t}}, {{t}}[, value=2|0.5]
        lerp, {{t}}, 0.3; clamp, <{{t}}|None>, {{t}}; clamp, <-1|None>, <1|0.2>; clamp_min, {{t}}; renorm, 2, 0, 0.5
    """
    more = """
        <sum|mean|prod|nansum|amax|amin|all|any|argmax|logsumexp|cumsum|cumprod>, {dim}
        <sum|prod|cumsum|cumprod>, {dim}, dtype={dt}; <matmul|mm|bmm|outer|kron|special.xlog1py>, {y}
        <diag|nonzero|special.entr|special.i1|diff>; flip, (0,); gather, {dim}, torch.zeros({shape}, dtype=torch.long)
        index_select, {dim}, torch.tensor((0, 0)); bucketize, torch.tensor((0.0, 1.0)); quantile, 0.5
    """
    words = {"y": p.one(like(), "2", "0.5", "True", "-1"), "t": like, "shape": shape}
    place = p.flag()
    reduced = not place and p.flag()
    if place:  # (PyTorch's `triu` overruns the memory of an `out` of several matrices that is not contiguous)
        table += "<tril|triu>[, diagonal=-1|1]\nlerp, {t}, {t}"
    name, _, args = p.choice(more if reduced else table, n, **words).partition(",")
    if place:
        y = p.name(p.often(f"{x}.clone()", x, f"{x}[..., :1]" if n else x))
        p.lines.append(f"r = {y}.{name}_({args.strip()})")
        return f"[r, r is {y}, {x}]"
    args = f"{x},{args}" if args else x
    p.lines.append(f"try:\n    like = torch.{name}({args})\nexcept Exception:\n    like = torch.zeros(2)")
    dtype = p.often("like.dtype", f"torch.{e}", f"torch.{p.dtype()}")
    size = p.often("like.shape", "(0,)", p.shape(n), "()")
    out = p.name(p.one(
        f"torch.zeros({size}, dtype={dtype})", f"torch.zeros(*{size}[:-1], 6, dtype={dtype})[..., ::2]",
        f"torch.zeros({size}[::-1], dtype={dtype}).permute(*range(len({size}))[::-1])",
        "torch.zeros(0)" if reduced else x,
    ))  # fmt: skip
    p.lines.append(f"r = torch.{name}({args}, out={out})")
    return f"[r, r is {out}, [*r.shape]]"


CALLS: list[Callable[[Program], str]] = [
    creation, decomposition, einsum, hermitian, into, inverse, low_rank, norms, pointwise, product, reduction, scatter,
    search, statistics,
]  # fmt: skip

END = """
def tensors(x):
    return [t for each in x for t in tensors(each)] if isinstance(x, (list, tuple)) else [x]
out = tensors(out)
ends = [t for t in out if isinstance(t, torch.Tensor) and t.requires_grad]
loss = sum((t * numbers(0, *t.shape).to(t.dtype)).sum() for t in ends)
leaves = [{leaves}]
grads = torch.autograd.grad(loss, leaves, allow_unused=True) if ends and leaves else []
grads = [g if g is None else g.detach() for g in grads]
"""


def text_of(call: Callable[[Program], str], rng: random.Random) -> str:
    """Return a program, without the lines whose results are not used."""
    p = Program(rng)
    used = call(p)
    program = f"out = {used}"
    for line in reversed(p.lines):
        name = line.split(" ", 1)[0]
        if name[1:].isdigit() and not re.search(rf"\b{name}\b", used):
            p.leaves = [each for each in p.leaves if each != name]
            continue
        program, used = f"{line}\n{program}", f"{used} {line}"
    return f"{BEGIN}{program}{END.replace('{leaves}', ', '.join(p.leaves))}"


#: Words of PyTorch's errors for calls that tinytorch has an answer for; see docs/differences.md.
ANSWERED = (
    "view size is not compatible", "Autograd not support dtype", "setStorage: sizes", "must be Tensor, not",
    "modified by an inplace operation", "Expected dtype int64 for index", "match the broadcast shape",
    "missing 1 required positional arguments", "Expected a proper Tensor but got None", "size mismatch, got input",
    "the derivative for", "derivative for aten",
)  # fmt: skip
#: Words of errors of ours for arguments that PyTorch does not look at where there are no elements.
OF_EMPTY = ("not implemented", "out of bounds", "Dimension out of", "non-zero size", "empty tensor", "out of range")


def words(error: Exception) -> set[str]:
    return set(re.findall("[a-z_]{4,}", str(error).lower().split(". ")[0]))


def compared(text: str) -> str | None:
    """Return what is different in a program's outcomes, or None."""
    ours, theirs = outcome(text, "tinytorch"), outcome(text, "torch")
    empty = re.search(r"numbers\((\d+, )+0\b|expand\(.*\b0\b|size\(0\)", text)
    if isinstance(ours, Exception) and empty and any(each in str(ours) for each in OF_EMPTY):
        return None
    if isinstance(theirs, Exception):
        same = type(ours).__name__ == type(theirs).__name__
        if same or (any(each in str(theirs) for each in ANSWERED) and not isinstance(ours, AttributeError)):
            return None
        # Of two errors in a call another one may come first, that of the dtype for instance.
        known = {"RuntimeError", "NotImplementedError", "IndexError"}
        if {type(ours).__name__, type(theirs).__name__} <= known:
            theirs_said = words(theirs)
            if len(words(ours) & theirs_said) < 0.5 * len(theirs_said):
                return None
        return f"{ours!r} against {theirs!r}"
    coarse = {"bfloat16": 6e-2, "float16": 1e-2, "float32": 2e-5}
    limit = max([rtol for kind, rtol in coarse.items() if kind in text], default=1e-7)
    if isinstance(ours, Exception) or len(ours) != len(theirs):
        return f"{ours!r} against {theirs!r}"
    found = (difference(*both, coarse=limit) for both in zip(ours, theirs, strict=True))
    return next((each for each in found if each), None)


@random_programs(400, st.sampled_from(CALLS), RANDOMS)
def test_random_options_agree(call: Callable[[Program], str], rng: random.Random) -> None:
    text = text_of(call, rng)
    found = compared(text)
    assert found is None, f"{found}\n\n{text}"


FOUND = """
    torch.tensor(0.0).index_fill(0, torch.tensor([], dtype=torch.long), 5)
    torch.tensor(1.0).index_add(0, torch.tensor([0, 0]), torch.ones(2))
    torch.tensor(1.0).index_add(0, torch.tensor([0, 0]), torch.tensor(1.0))
    torch.ones(2).index_reduce(0, torch.tensor([0, 0]), torch.tensor(1.0), "prod")
    torch.take_along_dim(torch.tensor(1.0), torch.tensor(0), dim=0); torch.slice_copy(torch.tensor(1.0))
    torch.ones(2).scatter_reduce(0, torch.zeros(0, dtype=torch.long), torch.ones(0, dtype=torch.long), "sum")
    torch.unique_consecutive(torch.ones(2, 0), return_inverse=True); torch.isin(torch.ones(3), True)
    torch.searchsorted(torch.tensor([False, True]), torch.tensor([True]))
    torch.logspace(2.5, -2, 1, base=2, dtype=torch.int16); torch.logspace(5, 0, 1, dtype=torch.float16)
    torch.logspace(-1.5, 3, 0, dtype=torch.uint8); torch.linspace(0, 3, 1, dtype=torch.bool)
    torch.range(0, 3, dtype=torch.bool); torch.round(torch.ones(3, dtype=torch.uint8), decimals=0)
    torch.linalg.vector_norm(torch.ones(3), dtype=torch.float16)
    torch.linalg.vector_norm(torch.ones(3, dtype=torch.float16), dtype=torch.bfloat16)
    torch.norm(torch.ones(3), 0, dtype=torch.int64)
    torch.linalg.matrix_norm(torch.ones(3, 3, dtype=torch.bfloat16), 2, dtype=torch.float32)
    torch.linalg.matrix_norm(torch.ones(2, 2), dim=1); torch.linalg.norm(torch.ones(2, 2), dim=())
    torch.linalg.norm(torch.ones(2, 2), "fro", dim=1); torch.frobenius_norm(torch.ones(3), None)
    torch.addr(torch.ones(2, 2).long(), torch.ones(2).long(), torch.ones(2).long(), beta=0.5)
    torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=True)
    torch.linalg.lstsq(numbers(1, 3, 1, 3), numbers(2, 1, 2)).solution
    torch.linalg.lstsq(numbers(1, 2, 3, 2), numbers(2, 1, 3)); torch.trapezoid(torch.ones(2, 0), torch.ones(2, 0))
    torch.trapezoid(torch.ones(2, 0, dtype=torch.long), dx=2)
    torch.cumulative_trapezoid(torch.ones(2, 0), torch.ones(2, 0)); torch.trapezoid(torch.tensor([True, False]))
    torch.trapezoid(torch.ones(2), 0.5); torch.roll(torch.tensor(1.0), 1, (0, -1))
    torch.roll(torch.ones(0), (1, 1), (0, 1)); torch.nanmean(torch.ones(3), dtype=torch.int32)
    torch.sum(torch.ones(3), 0, dtype=torch.float64, out=torch.zeros(()))
    torch.cumsum(torch.ones(3), 0, dtype=torch.int64, out=torch.zeros(3, dtype=torch.int32))
    torch.embedding_bag(torch.ones(2, 2), torch.tensor([0, 1]).short(), torch.tensor([0]))[0]; torch.ones(2).equal(None)
    torch.gradient(torch.tensor((100, -100, 3, 50)).char(), edge_order=2); torch.ones(2, 2).addmm(1.0, torch.ones(2, 2))
    [*torch.ones(3, 4).t().select_scatter(torch.ones(4), 1, 0).stride()]; (torch.ones(3) @ torch.ones(2, 3, 4)).stride()
    torch.trapezoid(torch.ones(3, 4), torch.ones(2, 1, 4), dim=0); torch.var(torch.ones(3), correction=torch.tensor(2))
    torch.ones(2).index_reduce(0, torch.tensor(0), None, "prod"); torch.trapz(torch.ones(2), torch.ones(3, 2))
    torch.layer_norm(torch.ones(3), (3,), eps=torch.tensor(1)); torch.ones(2).put_(torch.tensor(0), 2.5)
    torch.einsum("i,i", -0.5, torch.ones(2)); torch.ones(2).addcmul_(True, 2)
"""


@pytest.mark.parametrize("call", expressions(FOUND))
def test_calls_that_were_found(call: str) -> None:
    found = compared(f"{BEGIN}out = {call}{END.replace('{leaves}', '')}")
    assert found is None, found
