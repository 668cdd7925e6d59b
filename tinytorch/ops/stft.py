"""Short-time Fourier transforms: the spectra of overlapping frames of a signal, and the signal of such spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import meta
from tinytorch.kernels.checks import out_of_range
from tinytorch.kernels.fft import BY_COUNT, BY_ROOT, UNSCALED
from tinytorch.kernels.reduce import int_of
from tinytorch.ops.arithmetic import mul, true_divide
from tinytorch.ops.complex import view_as_real
from tinytorch.ops.create import ones
from tinytorch.ops.fft import complex_to_complex, complex_to_real, real_to_complex
from tinytorch.ops.nn.padding import pad
from tinytorch.ops.rearrange import constant_pad
from tinytorch.ops.register import public
from tinytorch.ops.shape import _expand, _fold, _slice, squeeze, transpose, unfold, unsqueeze
from tinytorch.ops.transcendental import square

_NO_WINDOW = "A window was not provided. A rectangular window will be applied"
_ONES = (
    "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


def _described(
    name: str, input: Tensor, window: Tensor | None, options: dict[str, Any], further: dict[str, Any]
) -> str:
    """Return a call as PyTorch's errors show it."""

    def words(value: Any) -> str:
        return str(int(value)) if isinstance(value, bool) else str(value)

    def kind(x: Tensor) -> str:
        name = x.dtype.tensor_name
        return f"CPU{name}Type" if x.dtype.is_complex else f"torch.{name}Tensor"

    shown = [f"{key}={words(value)}" for key, value in options.items()]
    shown.append("window=" + ("None" if window is None else f"{kind(window)}{{{list(window._array.shape)}}}"))
    shown += [f"{key}={words(value)}" for key, value in further.items()]
    return f"{name}({kind(input)}{list(input._array.shape)}, {', '.join(shown)}) "


def _lengths(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    n_fft = int_of(n_fft, name, "n_fft")
    hop = n_fft >> 2 if hop_length is None else int_of(hop_length, name, "hop_length")
    return n_fft, hop, n_fft if win_length is None else int_of(win_length, name, "win_length")


def _check_window(name: str, input: Tensor, window: Any) -> None:
    if window is None:
        return
    if window.device != input.device:
        raise RuntimeError(
            f"{name} input and window must be on the same device but got self on {input.device} and window on "
            f"{window.device}"
        )


def _centred(window: Tensor, n_fft: int) -> Tensor:
    """Return the window with zeros on both sides."""
    short = n_fft - window._array.shape[0]
    return constant_pad(window, (short // 2, short - short // 2), 0) if short else window


@public(method=True, python=True, autocast="float32")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the short-time Fourier transform: the spectra of the frames of a signal, each multiplied by a window.

    Of signals (L,) or (B, L), real or complex, it is (frequencies, frames) or (B, frequencies, frames). Frame t has the
    N = `n_fft` elements from `t * hop_length` on, by default every N // 4. With `center` the signal is padded by N // 2
    on both sides, as `nn.functional.pad` does it by `pad_mode`, so that frame t is centred at `input[t * hop_length]`.

    The window (win_length,) is by default ones; a shorter one than N is centred in the frame, with zeros around it;
    without `center`, `align_to_window` begins with the frame whose window begins at the first element. `normalized`
    divides by sqrt(N). `onesided` returns the N // 2 + 1 first frequencies, by default if the signal and the window are
    real; then `return_complex` must be given: False, which is deprecated, returns real and imaginary parts in a last
    dimension.

    Example:
        >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True)
        tensor([[4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j, 4.+0.j],
                [0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j]])
    """
    n_fft, hop, length = _lengths("stft", n_fft, hop_length, win_length)
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        missing = 3 - input._array.ndim  # (`pad` takes a batch of channels)
        for _ in range(missing):
            input = unsqueeze(input, 0)
        input = pad(input, (n_fft // 2, n_fft // 2), pad_mode)
        for _ in range(missing):
            input = squeeze(input, 0)
    _check_window("stft", input, window)
    if window is None:
        warn(
            f"{_NO_WINDOW},which is known to cause spectral leakage. Other windows such as torch.hann_window or "
            f"torch.hamming_window are recommended to reduce spectral leakage.{_ONES}",
            once=True,
        )
    complex_input = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    as_complex = complex_input if return_complex is None else return_complex
    if not as_complex:
        if return_complex is None:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
            "torch.view_as_real on the complex output to recover the old return format.",
            once=True,
        )

    def refuse(text: str) -> None:
        lengths = {"n_fft": n_fft, "hop_length": hop, "win_length": length}
        further = {"normalized": normalized, "onesided": onesided, "return_complex": as_complex}
        further["align_to_window"] = align_to_window
        raise RuntimeError(f"{_described('stft', input, window, lengths, further)}: expected {text}")

    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        refuse("a tensor of floating point or complex values")
    ndim = input._array.ndim
    if ndim not in (1, 2):
        refuse("a 1D or 2D tensor")
    points = input._array.shape[-1]
    if not 0 < n_fft <= points:
        refuse(f"0 < n_fft < {points}, but got n_fft={length}")
    if hop <= 0:
        refuse(f"hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        refuse(f"0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._array.shape != (length,):
        refuse(
            f"a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._array.shape)}"
        )
    if window is None and length < n_fft:
        window = ones(length, dtype=input.dtype, device=input.device)
    frames = input if ndim == 2 else unsqueeze(input, 0)
    if align_to_window:
        side, count = (n_fft - length) // 2, 1 + (points - length) // hop
        frames = unfold(constant_pad(frames, (side, side), 0), 1, n_fft, hop)
        if frames._array.shape[1] < count:
            raise RuntimeError(f"stft: the last of {count} frames of {n_fft} elements is beyond the end of the signal")
        frames = _slice(frames, 1, 0, count)
    else:
        frames = unfold(frames, 1, n_fft, hop)  # (B, frames, N)
    if window is not None:
        frames = mul(frames, _centred(window, n_fft))
    complex_frames = frames.dtype.is_complex
    half = not complex_frames if onesided is None else onesided
    scale = BY_ROOT if normalized else UNSCALED
    if complex_frames:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        made = complex_to_complex(frames, (2,), scale, True)
    else:
        made = real_to_complex(frames, (2,), scale, half)
    made = transpose(made, 1, 2)
    if ndim == 1:
        made = squeeze(made, 0)
    return made if as_complex else view_as_real(made)


@public(method=True, listed=False)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal with the given short-time Fourier transform, by least squares: the inverse of `stft`.

    The inverse transforms of the spectra (frequencies, frames) or (B, frequencies, frames), times the window, are added
    at the places of the frames, and divided by the sum of the squares of the windows there; RuntimeError where that is
    0. `length` is that of the signal, by default what the frames cover, with `center` without the padding. `onesided`:
    the spectra have the first n_fft // 2 + 1 frequencies, by default if they have not `n_fft`. The other arguments are
    as for `stft`.

    Example:
        >>> window = torch.ones(4)
        >>> torch.istft(torch.stft(torch.arange(6.0), 4, window=window, return_complex=True), 4, window=window)
        tensor([0., 1., 2., 3., 4., 5.])
    """
    n_fft, hop, size = _lengths("istft", n_fft, hop_length, win_length)
    _check_window("istft", input, window)
    if window is None:
        warn(
            f"{_NO_WINDOW}.Please provide the same window used by stft to make the inversion lossless.{_ONES}",
            once=True,
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    shape = input._array.shape
    if len(shape) < 2:
        raise out_of_range(-3, len(shape) + 1)
    frequencies, frames = shape[-2:]

    def described() -> str:
        lengths = {"n_fft": n_fft, "hop_length": hop, "win_length": size}
        further = {"center": center, "normalized": normalized, "onesided": onesided, "length": length}
        return _described("istft", input, window, lengths, further | {"return_complex": return_complex})

    def refuse(text: str) -> None:
        raise RuntimeError(f"{described()}: {text}")

    if not input._array.size:
        refuse("input tensor cannot be empty.")
    if len(shape) > 3:
        refuse(f"expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    half = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if half else n_fft):
        refuse(
            "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft"
            f"{' / 2 + 1' if half else ''} when onesided={bool(half)}, but got {frequencies}"
        )
    if not 0 < hop <= size:
        refuse("expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        refuse("expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (size,):
        refuse("Invalid window shape. window has to be 1D and length of `win_length`")
    if window is None:
        window = ones(size, dtype=input.dtype.to_real(), device=input.device)
    window = _centred(window, n_fft)
    spectra = transpose(input if len(shape) == 3 else unsqueeze(input, 0), 1, 2)  # (B, frames, frequencies)
    scale = BY_ROOT if normalized else BY_COUNT
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        parts = complex_to_complex(spectra, (2,), scale, False)
    else:
        if window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        parts = complex_to_real(_slice(spectra, 2, 0, n_fft // 2 + 1), (2,), scale, n_fft)
    parts = mul(parts, window)  # (B, frames, N)
    covered = n_fft + hop * (frames - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else -start if center else covered
    begin, stop, _ = slice(start, end).indices(covered)
    stop = max(begin, stop)
    y = _slice(_fold(parts, (parts._array.shape[0], covered), 1, n_fft, hop), 1, begin, stop)
    envelope = _fold(_expand(square(window), (1, frames, n_fft)), (1, covered), 1, n_fft, hop)
    envelope = _slice(envelope, 1, begin, stop)
    if begin == stop:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    if meta.known(lambda x: np.abs(x).min() < 1e-11, envelope._array):
        raise RuntimeError(f"{described()}window overlap add min: 1")
    y = true_divide(y, envelope)
    if len(shape) == 2:
        y = squeeze(y, 0)
    if end > covered:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            once=True,
        )
        y = constant_pad(y, (0, end - covered), 0)
    return y
