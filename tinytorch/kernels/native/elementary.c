// Twins of kernels/elementary.py, and of functions of kernels/special.py and kernels/transcendental.py.
#include "elementary.h"

POINTWISE(exp, (x), (), exp_of(x))
POINTWISE(exp2, (x), (), exp2_of(x))
POINTWISE(expm1, (x), (), expm1_of(x))
POINTWISE(log, (x), (), log_of(x))
POINTWISE(log2, (x), (), log2_of(x))
POINTWISE(log10, (x), (), log10_of(x))
POINTWISE(log1p, (x), (), log1p_of(x))
POINTWISE(sin, (x), (), sin_of(x))
POINTWISE(cos, (x), (), cos_of(x))
POINTWISE(tan, (x), (), tan_of(x))
POINTWISE(arcsin, (x), (), arcsin_of(x))
POINTWISE(arccos, (x), (), arccos_of(x))
POINTWISE(arctan, (x), (), arctan_of(x))
POINTWISE(sinh, (x), (), sinh_of(x))
POINTWISE(cosh, (x), (), cosh_of(x))
POINTWISE(tanh, (x), (), tanh_of(x))
POINTWISE(arcsinh, (x), (), arcsinh_of(x))
POINTWISE(arccosh, (x), (), arccosh_of(x))
POINTWISE(arctanh, (x), (), arctanh_of(x))
POINTWISE(erf, (x), (), erf_of(x))
POINTWISE(erfc, (x), (), erfc_of(x))
POINTWISE(rsqrt, (x), (), rsqrt_of(x))
POINTWISE(sinc, (x), (), sinc_of(x))
POINTWISE(entropy, (x), (), entropy_of(x))
POINTWISE(log_odds, (x), (), log_odds_of(x))

FAMILY(elementary, ENTRY(exp), ENTRY(exp2), ENTRY(expm1), ENTRY(log), ENTRY(log2), ENTRY(log10), ENTRY(log1p),
       ENTRY(sin), ENTRY(cos), ENTRY(tan), ENTRY(arcsin), ENTRY(arccos), ENTRY(arctan), ENTRY(sinh), ENTRY(cosh),
       ENTRY(tanh), ENTRY(arcsinh), ENTRY(arccosh), ENTRY(arctanh), ENTRY(erf), ENTRY(erfc),
       ENTRY(rsqrt), ENTRY(sinc), ENTRY(entropy), ENTRY(log_odds));
