"""What all pages need."""

from __future__ import annotations

import warnings

import pytest

from tests.oracle import torch


@pytest.fixture(scope="package", autouse=True)
def forward_mode_is_loaded() -> None:
    """Use PyTorch's forward mode once: the first use compiles, and warns of what it uses for that."""
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))
