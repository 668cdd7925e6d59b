"""Fourier transforms: long rows, which native kernels transform, and what the samples do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared, expressions, of_each, programs
from tinytorch import fft as functions

parametrize = pytest.mark.parametrize
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


def numbers(shape: tuple[int, ...], kind: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in kind else x).astype(kind)


def of_reals(name: str) -> bool:
    return name.strip("2n") in ("rfft", "ihfft")


LAYOUTS = {
    "plain": lambda x: x, "turned": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "steps": lambda x: x[..., ::2], "expanded": lambda x: x[:1].expand(3, *x.shape[1:]),
}  # fmt: skip


@needs_oracle
@parametrize("kind", ["float32", "float64", "complex64"])
@parametrize("layout", LAYOUTS)
@parametrize("name", [*ONE, "fft2", "irfft2", "rfftn", "hfftn"])
def test_long_dimensions(name: str, layout: str, kind: str) -> None:
    """Powers of two in single precision have native kernels; both, and their gradients, agree with PyTorch."""
    if of_reals(name) and "complex" in kind:
        return
    for shape, options in (
        ((5, 256), {}), ((3, 128, 256), {"norm": "ortho"}), ((256, 3), {"dim": (0,) if name[-1] in "2n" else 0}),
        ((2, 257), {"norm": "forward"}), ((2, 130), {}), ((2, 8192), {}),
    ):  # fmt: skip
        x = numbers(shape, kind)
        found = []
        for library in (tinytorch, torch):
            leaf = library.from_numpy(x.copy()).requires_grad_()
            out = getattr(library.fft, name)(LAYOUTS[layout](leaf), **options)
            weights = numbers(tuple(out.shape), str(out.dtype).rpartition(".")[2])
            found.append([out, *library.autograd.grad(out, leaf, library.from_numpy(weights))])
        for k, (ours, theirs) in enumerate(zip(*found, strict=True)):
            assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
            if k == 0:
                assert ours.stride() == theirs.stride()
            mine, other = (each.detach().resolve_conj().numpy() for each in (ours, theirs))
            tolerance = 1e-12 if kind == "float64" else 2e-6
            np.testing.assert_allclose(mine, other, tolerance, tolerance * np.abs(other).max() * 2)


def test_both_halves_of_a_spectrum_of_real_numbers_are_conjugates() -> None:
    for length in (64, 128, 4096):
        x = tinytorch.randn(3, length)
        out = tinytorch.fft.fft(x)
        assert out[:, 1:].equal(out[:, 1:].flip(1).conj()) and out[:, 0].imag.abs().max() == 0
        np.testing.assert_allclose(tinytorch.fft.rfft(x).numpy(), out[:, : length // 2 + 1].numpy(), 1e-6, 1e-5)


def test_inputs_are_not_changed() -> None:
    for kind in ("float32", "float64"):
        x = tinytorch.tensor(numbers((4, 128), kind))
        z = tinytorch.fft.fft2(x)
        copies = x.clone(), z.clone()
        for name in functions.__all__:
            if "freq" not in name:
                getattr(tinytorch.fft, name)(x if of_reals(name) else z)
        assert x.equal(copies[0]) and z.equal(copies[1])


FREQUENCIES = [
    *[f"{n}, {d}" for n in (0, 1, 4, 7) for d in (1.0, 0.3, 0.0)], "-3", "5, out=torch.ones(2)",
    *[f"5, dtype=torch.{kind}" for kind in ("float16", "float32", "float64", "int64", "complex64")],
    "5, d=0.5, out=(out := torch.empty(0, dtype=torch.float64))) is out, (out",
]  # fmt: skip
NAMES = ("fftfreq", "rfftfreq")
test_frequencies = of_each(programs("\n".join(f"(torch.fft.{name}({each}))" for name in NAMES for each in FREQUENCIES)))


@compared(rtol=1e-3, atol=1e-6)
def test_out(torch: Any) -> Any:
    x, found = torch.tensor([[1.0, 2.0, -1.0], [0.0, 4.0, 3.0]]), []
    for name, kind in (
        ("fft", "complex64"), ("ifft2", "complex128"), ("rfftn", "complex64"), ("ihfft", "complex64"),
        ("irfft", "float32"), ("hfft2", "float64"), ("irfftn", "float16"),
    ):  # fmt: skip
        out = torch.empty(0, dtype=getattr(torch, kind))
        found += [getattr(torch.fft, name)(x, out=out) is out, out]
    return found, torch.fft.fftfreq(4, device="meta").is_meta, torch.fft.rfftfreq(4, device="meta").is_meta


ERRORS = """
F.fft(x, out=torch.empty(0))|F.rfft2(x, out=torch.empty(0))|F.irfft(z, out=torch.empty(0, dtype=torch.cfloat))
F.irfftn(z, out=torch.empty(0, dtype=torch.int64))|F.fft(x, n=0)|F.fft(x, n=-1)|F.fftn(x, s=(0, 3))|F.hfft(x, n=0)
F.irfft(x[:, :1])|F.irfftn(x[:, :1])|F.hfftn(x[:, :1], s=(3, -1))|F.irfftn(x, s=(3, 0))|F.fft(x[:, :0])
F.fft(x, norm="bad")|F.fftn(x, norm="bad")|F.fft(x.half())|F.irfftn(x.bfloat16())|F.hfft(x.half())|F.rfft(z)|F.rfft2(z)
F.ihfft(z)|F.fft(torch.tensor(1.0))|F.rfftn(torch.tensor(1.0))|F.hfftn(torch.tensor(1.0))|F.fft(x, dim=2)
F.fft2(x[0])|F.fft2(x, dim=(0, 0))|F.fftn(x, s=(1,), dim=(0, 1))|F.fftn(x, s=(1, 2, 3))|F.fft2(x, s=3)
F.rfftn(x, dim=[])|F.irfft2(x, dim=[])|F.ihfftn(x, s=[])|F.fftshift(x, dim=5)|F.fftshift(torch.tensor(1.0))
torch.stft(x, 8, window=w)|torch.stft(z, 8, window=w, onesided=True)|torch.stft(x, 100, window=w, return_complex=True)
torch.stft(x, 50, window=w, center=False, return_complex=True)|torch.stft(x, 8, 0, window=w, return_complex=True)
torch.stft(x, 8, win_length=9, window=w, return_complex=True)
torch.stft(x, 8, win_length=6, window=w, return_complex=True)
torch.stft(x[None], 8, window=w, return_complex=True)|torch.stft(x.long(), 8, window=w, return_complex=True)
torch.stft(x, 8, window=w, pad_mode="bad", return_complex=True)|torch.stft(x, 0, window=w, return_complex=True)
torch.stft(x, 8, window=w, align_to_window=True, return_complex=True)|torch.istft(X, 8, window=torch.zeros(8))
torch.istft(X.real, 8, window=w)
torch.istft(X, 8, window=w, center=False)|torch.istft(X, 8, window=w.cfloat())|torch.istft(X, 8, window=3)
torch.istft(X, 8, window=w, return_complex=True)|torch.istft(X, 8, window=w, onesided=False)
torch.istft(X[None], 8, window=w)
torch.istft(X, 5, window=w[:5], onesided=True)|torch.istft(X[:, :, :0], 8, window=w)|torch.istft(X, 8, 9, window=w)
torch.istft(X, 8, window=w, win_length=9)|torch.istft(X, 8, window=w, win_length=6)
torch.istft(X, 8, window=w, length=0)
torch.stft(x, 8, window=w.to("meta"), return_complex=True)|torch.istft(X[0, 0], 8, window=w)
torch.istft(X, 8.5, window=w)
"""


@parametrize("call", expressions(ERRORS.replace("|", ";")))
@compared
def test_errors(torch: Any, call: str) -> Any:
    x = torch.arange(80.0).reshape(2, 40)
    names = {"torch": torch, "F": torch.fft, "x": x, "z": torch.complex(x, -x), "w": torch.hann_window(8)}
    names["X"] = torch.stft(x, 8, window=names["w"], return_complex=True)
    return eval(call, names)


@needs_oracle
def test_calls_that_warn() -> None:
    """`same_as_pytorch` compares the warnings, too."""
    x = np.arange(12.0)

    def without_window(torch: Any) -> Any:
        return torch.view_as_real(torch.stft(torch.tensor(x), 4, return_complex=True))

    def old_result(torch: Any) -> Any:
        return torch.stft(torch.tensor(x), 4, window=torch.ones(4), return_complex=False)

    def longer(torch: Any) -> Any:
        spectra = torch.stft(torch.tensor(x), 4, window=torch.ones(4), return_complex=True)
        return torch.istft(spectra, 4, window=torch.ones(4), length=30)

    def inverse_without_window(torch: Any) -> Any:
        return torch.istft(torch.ones(3, 4, dtype=torch.cfloat), 4)

    for program in (without_window, old_result, longer, inverse_without_window):
        ours, theirs = [], []
        for library, found in ((tinytorch, ours), (torch, theirs)):
            with pytest.warns(UserWarning) as caught:
                found += [program(library).numpy(), [str(each.message).partition(" (Trig")[0] for each in caught]]
        np.testing.assert_allclose(ours[0], theirs[0], 1e-5, 1e-6)
        assert ours[1] == theirs[1]


@needs_oracle
@parametrize("onesided", [True, False])
@parametrize("length", [64, 50])
def test_the_signal_of_its_spectra(length: int, onesided: bool) -> None:
    x = numbers((2, 300), "float64")
    for center, normalized, hop in ((True, False, 16), (True, True, 7), (False, False, 25)):
        options = {"n_fft": length, "hop_length": hop, "center": center, "normalized": normalized, "onesided": onesided}
        found = []
        for library in (tinytorch, torch):
            leaf = library.tensor(x, requires_grad=True)
            window = library.hamming_window(length, dtype=library.float64, requires_grad=True)
            spectra = library.stft(leaf, window=window, return_complex=True, **options)
            back = library.istft(spectra, window=window, **options)
            grads = library.autograd.grad((back * back.cos()).sum(), (leaf, window))
            found.append([spectra.detach().numpy(), back.detach().numpy(), *[g.numpy() for g in grads]])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-8, 1e-9)
        np.testing.assert_allclose(found[0][1], x[:, : found[0][1].shape[1]], 1e-8, 1e-9)


@needs_oracle
def test_complex_signals() -> None:
    x, window = numbers((2, 60), "complex128"), numbers((16,), "complex128")
    for mode in ("reflect", "constant", "circular", "replicate"):
        found = []
        for library in (tinytorch, torch):
            leaf, weights = library.tensor(x, requires_grad=True), library.tensor(window, requires_grad=True)
            spectra = library.stft(leaf, 16, window=weights, pad_mode=mode)
            back = library.istft(spectra, 16, window=weights.abs().detach(), length=60, return_complex=True)
            grads = library.autograd.grad((back * back.conj()).real.sum(), (leaf, weights))
            found.append([each.detach().resolve_conj().numpy() for each in (spectra, back, *grads)])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-8, 1e-8)


@needs_oracle
@parametrize("name", functions.__all__)
def test_the_meta_device(name: str) -> None:
    if "freq" in name:
        return
    for shape in ((3, 4), (5, 300)):
        ours = getattr(tinytorch.fft, name)(tinytorch.empty(shape, device="meta"))
        theirs = getattr(torch.fft, name)(torch.empty(shape))
        assert (ours.is_meta, tuple(ours.shape), ours.stride()) == (True, tuple(theirs.shape), theirs.stride())
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    if "shift" in name:
        return
    large = tinytorch.empty(1 << 20, 1 << 20, device="meta", requires_grad=True)
    out = getattr(tinytorch.fft, name)(large)
    (g,) = tinytorch.autograd.grad(out, large, tinytorch.empty_like(out))
    assert g.is_meta and g.shape == large.shape


def test_short_time_transforms_on_the_meta_device() -> None:
    x, window = tinytorch.empty(2, 1000, device="meta"), tinytorch.empty(64, device="meta")
    spectra = tinytorch.stft(x, 64, window=window, return_complex=True)
    assert spectra.is_meta and spectra.shape == (2, 33, 63)
    assert tinytorch.istft(spectra, 64, window=window, length=1000).shape == (2, 1000)


def test_vmap_and_forward_mode_of_a_loss() -> None:
    x = tinytorch.tensor(numbers((3, 8), "float64"))

    def energy(x: Any) -> Any:
        return (tinytorch.fft.rfft(x).abs() ** 2).sum()

    each = tinytorch.func.vmap(energy)(x)
    np.testing.assert_allclose(each.numpy(), (tinytorch.fft.rfft(x).abs() ** 2).sum(1).numpy())
    rows = tinytorch.func.vmap(lambda x: tinytorch.fft.fft(x, norm="ortho"))(x)
    np.testing.assert_allclose(rows.numpy(), np.fft.fft(x.numpy(), norm="ortho"))
    hessian = tinytorch.func.hessian(energy)(x[0])
    backwards = tinytorch.func.jacrev(tinytorch.func.grad(energy))(x[0])
    np.testing.assert_allclose(hessian.numpy(), backwards.numpy(), 1e-9, 1e-12)


def test_compiled_functions() -> None:
    def smooth(x: Any) -> Any:
        spectrum = tinytorch.fft.rfft(x * 2)
        return tinytorch.fft.irfft(spectrum * 0.5, n=x.shape[-1]).relu() + 1

    compiled = tinytorch.compile(smooth)
    for seed in range(3):
        x = tinytorch.tensor(numbers((4, 128 + seed), "float32"), requires_grad=True)
        y = x.detach().clone().requires_grad_()
        ours, expected = compiled(x), smooth(y)
        np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), 1e-6, 1e-6)
        ours.sum().backward()
        expected.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), 1e-6, 1e-6)
