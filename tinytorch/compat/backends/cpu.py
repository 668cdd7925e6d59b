"""`torch.backends.cpu`."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Return the vector instruction set that the processor supports: "AVX512", "AVX2" or "DEFAULT".

    NumPy's kernels select theirs at run time; torchvision chooses its resizing of uint8 images by this value.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    features = _multiarray_umath.__cpu_features__
    if features.get("AVX512_SKX"):
        return "AVX512"
    return "AVX2" if features.get("AVX2") and features.get("FMA3") else "DEFAULT"
