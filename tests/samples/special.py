"""Samples of `tinytorch.ops.special`."""

import numpy as np

from tests.samples import Sample, distinct, integers, normal, sample, uniform

x, y = normal(3, 4), normal(3, 4, seed=1)
positive, bounded = uniform(3, 4, low=0.3, high=2.5), uniform(3, 4, low=-0.9, high=0.9)
away = np.where(np.abs(x) < 0.2, 0.5, x)  # from zero
probabilities = uniform(3, 4, low=0.05, high=0.95)

# Functions of one tensor, with inputs in their domains; [0] and [1] in all: 0-d and empty. In place where PyTorch is.
UNARY = {
    "lgamma digamma": (positive * 4, True),
    "erfinv": (bounded, True),
    "i0": (away * 6, True),
    "special.i0e special.i1 special.i1e": (away * 6, False),
    "special.ndtr special.log_ndtr special.erfcx": (x * 2, False),
    "special.ndtri": (probabilities, False),
    "special.entr": (positive, False),
    "logit": (probabilities, True),
    "angle": (away, False),
}
SAMPLES: list[Sample] = []
for names, (inputs, in_place) in UNARY.items():
    for name in names.split():
        for each in (inputs, inputs[0, 0][...], inputs[:0], integers(2, 3, low=1, high=3)):
            SAMPLES.append(
                Sample(
                    name,
                    (np.array(each),),
                    in_place=in_place and each.dtype == np.float64,
                    rtol=1e-8 if name == "digamma" else 1e-9,
                )
            )

# Where PyTorch's own tables are good to 1e-6 only (see tests/ops/test_special.py for the digits), or to 1e-9.
SAMPLES += [
    Sample(f"special.{name}", (np.array(each),), rtol=1e-9)
    for name in (
        "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
    )
    for each in (positive * 4, positive[0, 0][...], positive[:0], integers(2, 3, low=1, high=3))
]  # fmt: skip
SAMPLES += [
    Sample(f"special.{name}", (np.array(each),), rtol=1e-5, atol=2e-6)
    for name in ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")
    for each in (positive * 4, positive[0, 0][...], positive[:0], integers(2, 3, low=1, high=3))
]

# Of two, over ways to broadcast.
BINARY = {
    "special.xlog1py": (x, positive),
    "special.zeta": (positive + 2, positive),
    "logaddexp2": (x, y),
    "igamma igammac": (positive * 2, positive[::-1] * 2),
    "nextafter": (x, y),
    "ldexp": (x, y),
}
#: No derivative by the first argument.
ONLY_SECOND = ("special.zeta", "igamma", "igammac")
for names, (a, b) in BINARY.items():
    for name in names.split():
        in_place = name in ("nextafter", "ldexp")
        for left, right, kept in (
            (a, b, True), (a, b[0], True), (a[:, :1], b[:1], False), (a[0], b, False), (a, b[0, 0][...], True),
            (a[0, 0][...], b[0, 0][...], True), (a[:, :0], b[:, :0], True),
        ):  # fmt: skip
            SAMPLES.append(
                Sample(
                    name, (np.array(left), np.array(right)), backward=name not in ONLY_SECOND,
                    in_place=in_place and kept, gradcheck=name not in (*ONLY_SECOND, "nextafter"),
                )
            )  # fmt: skip
SAMPLES += [
    sample("special.zeta", 2.5, positive),
    # (Of integers no gradient is asked for, which the others do not have.)
    sample("igamma", integers(3, 4, low=1, high=3), positive),
    sample("igammac", integers(3, 4, low=1, high=3), positive),
    sample("special.zeta", 3, positive - 4),
    sample("special.zeta", integers(3, 4, low=2), integers(3, 4)),
    sample("special.xlog1py", 1.5, positive),
    sample("special.xlog1py", x, 0.5),
    sample("special.xlog1py", 2, integers(3, 4, low=0)),
    # (PyTorch takes 2 to a negative integer for 0 in the gradient.)
    Sample("ldexp", (x, integers(3, 4)), backward=False),
    sample("ldexp", x, integers(3, 4, low=0)),
    sample("ldexp", integers(3, 4), integers(3, 4)),
    sample("gcd", integers(3, 4, low=-40, high=40), integers(4, low=-40, high=40)),
    Sample("gcd", (integers(3, 4, low=-40, high=40), integers(4, low=-40, high=40)), in_place=True),
    Sample("lcm", (integers(3, 4), integers(3, 4, seed=1)), in_place=True),
    sample("lcm", integers(3, 4).astype(np.int32), integers(3, 4, seed=1)),
    Sample("heaviside", (distinct(3, 4), np.array([0.5])), backward=False, gradcheck=False),
    Sample("heaviside", (integers(3, 4), integers(4)), in_place=True),
    Sample("logit", (uniform(3, 4, low=-0.2, high=1.2), 0.1), in_place=True),
    Sample("logit", (uniform(3, 4, low=-0.2, high=1.2),), gradcheck=False),
    Sample("logit", (np.array([-1.0, 0.0, 0.3, 1.0, 2.0, np.nan, np.inf]), 0.7), gradcheck=False),
    sample("frexp", away * 10),
    sample("frexp", np.array(3.0)),
    sample("frexp", x[:0]),
    sample("conj", x),
    sample("conj_physical", x),
    sample("resolve_conj", x),
    sample("resolve_neg", x),
    sample("is_conj", x),
    sample("is_neg", x),
    sample("special.expit", x),
    sample("special.exp2", x),
    sample("special.softmax", x, 1),
    sample("special.log_softmax", x, 1),
    sample("special.logsumexp", x, 1),
    sample("special.gammaln", positive),
    sample("special.psi", positive),
    sample("special.multigammaln", positive + 1, 3),
]
SAMPLES += [
    # (PyTorch's trigamma, the slope of digamma and polygamma(1), is good to 1e-8 only.)
    sample("polygamma", 0, positive),
    Sample("polygamma", (1, positive * 3), rtol=1e-7),
    *[sample("polygamma", n, np.array(each)) for n in (2, 3, 6) for each in (positive * 3, positive[0, 0][...])],
    sample("polygamma", 2, integers(2, 3, low=1, high=4)),
    sample("polygamma", 2, away * 4),
    Sample("Tensor.polygamma", (positive * 3, 2), in_place=True),
    *[Sample("mvlgamma", (np.array(each), p), in_place=True, rtol=1e-8)
      for p in (1, 2, 5) for each in (positive + 2, positive[0, 0][...] + 2, positive[:0])],
    sample("mvlgamma", integers(3, low=3, high=9), 2),
]  # fmt: skip
SAMPLES += [
    Sample(f"special.{name}", (np.array(at), degree), rtol=1e-7, atol=1e-9)
    for name in (
        *[f"{kind}chebyshev_polynomial_{letter}" for kind in ("", "shifted_") for letter in "tuvw"],
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    )
    for at, degree in (
        (x, 0), (x, 1), (x, 3), (bounded, 12), (x, integers(3, 4, low=-2, high=9)), (x[0], uniform(3, 1, high=9)),
        (x[:0], 2), (integers(4), 3), (0.5, integers(3, low=0)), (np.array([-1.0, 0.0, 1.0]), integers(2, 1, low=0)),
    )
]  # fmt: skip
for each, dim in ((x * 3, 0), (x * 3, 1), (x * 3, -1), (normal(2, 3, 2), 1), (x[0, 0][...], 0), (x[:0], 0)):
    SAMPLES.append(sample("logcumsumexp", np.array(each), dim))

# Where a function has no derivative, or is none: at poles, at ends, of infinities, of NaN.
SPECIAL = np.array([-np.inf, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 12.0, np.inf, np.nan])
pairs = [each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL)]
SAMPLES += [
    Sample(
        name, (SPECIAL,), gradcheck=False, rtol=1e-5 if "bessel_" in name else 1e-8,
        # PyTorch's trigamma takes sin(pi x) of integers, which should be 0, for about 1e-16; its slope of logit at -0.0
        # has either sign, that of log_ndtr at minus infinity is NaN.
        backward=name not in ("digamma", "lgamma", "logit", "special.log_ndtr"),
    )
    for names in UNARY
    for name in (*names.split(), "special.modified_bessel_k0", "special.modified_bessel_i1", "special.bessel_y1")
]  # fmt: skip
SAMPLES += [
    Sample(name, tuple(pairs), gradcheck=False, backward=name not in ("nextafter", *ONLY_SECOND))
    for names in BINARY
    for name in names.split()
    if name != "ldexp"
]
SAMPLES += [
    Sample("frexp", (SPECIAL,), gradcheck=False),
    Sample("heaviside", (*pairs,), gradcheck=False, backward=False),
]
