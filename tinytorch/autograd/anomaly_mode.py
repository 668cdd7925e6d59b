"""PyTorch's module of `detect_anomaly` and `set_detect_anomaly`."""

from tinytorch.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
