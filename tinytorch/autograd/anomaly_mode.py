"""Where programs import `detect_anomaly` and `set_detect_anomaly` from."""

from tinytorch.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
