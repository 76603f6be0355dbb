"""The error function, which NumPy lacks, from ufuncs that work in place."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["erf_into"]

# atanh(erf(x)) / x - 1 as a polynomial in x², constant term first; fitted for least relative error of erf on [0, 4].
_TANH_ARGUMENT = (
    0.12837917845805121,
    0.10277216442323249,
    -0.00020665159424638644,
    -0.000595310868253563,
    6.932323616922407e-05,
    1.3255521617503772e-06,
    -1.2887194598494415e-06,
    1.5611826711002964e-07,
    -8.46579227449903e-09,
    1.7863924822149498e-10,
)

# erf(x) / x as a polynomial in 2x² - 1 on 0 <= x <= 1: interpolation at Chebyshev nodes in 60-digit arithmetic.
_NEAR = (
    0.9654687386698673,
    -0.1405360890227171,
    0.019852496688984218,
    -0.0022854855611440855,
    0.00021751715603563488,
    -1.75371694412802e-05,
    1.2233827638093572e-06,
    -7.51156925108609e-08,
    4.115751500265885e-09,
    -2.035231956483527e-10,
    9.21125018742823e-12,
    -3.80659122412214e-13,
)

# exp(x²) erfc(x) as a polynomial in 14.4 / (x + 3) - 2.6 on 1 <= x <= 6, made in the same way.
_FAR = (
    0.20798329133342885,
    0.15436117429436919,
    0.049698445403394645,
    0.012713147695692198,
    0.0024793146970781862,
    0.0003316029605764126,
    1.956358324613712e-05,
    -2.4255574719050324e-06,
    -5.541274478467715e-07,
    4.526700764248737e-09,
    1.133953806174471e-08,
    2.638150898508076e-10,
    -2.5715114296032566e-10,
    -6.047405945991711e-12,
    6.0857915906870956e-12,
)


def erf_into(x: Array, out: Array) -> None:
    """Write erf(x) to `out`; both of one shape, both float32 or both float64, and not the same memory.

    float32: erf(x) = tanh(x + x p(x²)), p of degree 9; at most 2.5 ulp from math.erf, 0.35 on average, over every float32 from
    2^-20 to 8, with the tanh of NumPy 2.4 on AVX-512.
    float64: x p(2x² - 1) up to |x| = 1, then 1 - exp(-x²) q(14.4 / (|x| + 3) - 2.6) up to 6; at most 2 ulp from math.erf.
    NaN gives NaN, infinities ±1, -0 gives -0; x² may overflow on the way, so call it with overflow ignored.
    """
    if x.dtype == np.float32:
        _erf_float32(x, out)
    else:
        _erf_float64(x, out)


def _erf_float32(x: Array, out: Array) -> None:
    square = np.square(x)
    np.multiply(square, _TANH_ARGUMENT[-1], out=out)
    for coefficient in _TANH_ARGUMENT[-2:0:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, square, out=out)
    np.add(out, _TANH_ARGUMENT[0], out=out)
    np.multiply(out, x, out=out)
    np.add(out, x, out=out)
    np.tanh(out, out=out)


def _erf_float64(x: Array, out: Array) -> None:
    size = np.abs(x)
    near = np.minimum(size, 1.0)
    far = np.clip(size, 1.0, 6.0)
    complement = np.asarray(np.exp(-np.square(far)) * _polynomial(_FAR, 14.4 / (far + 3.0) - 2.6))
    np.subtract(1.0, complement, out=complement)
    np.copyto(out, complement)
    np.multiply(near, _polynomial(_NEAR, 2.0 * near * near - 1.0), out=out, where=size <= 1.0)
    np.copysign(out, x, out=out)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Return the polynomial with `coefficients`, constant term first, at `x`, by Horner's rule."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        np.multiply(result, x, out=result)
        np.add(result, coefficient, out=result)
    return result
