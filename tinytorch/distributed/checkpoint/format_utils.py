"""Conversion between checkpoints of `torch.distributed.checkpoint.save` and files of `torch.save`.

`python -m tinytorch.distributed.checkpoint.format_utils dcp_to_torch folder file` converts one.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from tinytorch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from tinytorch.distributed.checkpoint.planners import _EmptyStateDictLoadPlanner
from tinytorch.distributed.checkpoint.state_dict_loader import _load_state_dict
from tinytorch.distributed.checkpoint.state_dict_saver import _save_state_dict
from tinytorch.serialization import load, save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Convert a folder of `torch.distributed.checkpoint.save` to a file of `torch.save`.

    Example:
        >>> import tempfile
        >>> from tinytorch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save({"x": torch.ones(2)}, f"{folder}/a.pt")
        ...     torch_save_to_dcp(f"{folder}/a.pt", f"{folder}/checkpoint")
        ...     dcp_to_torch_save(f"{folder}/checkpoint", f"{folder}/b.pt")
        ...     torch.load(f"{folder}/b.pt")
        {'x': tensor([1., 1.])}
    """
    state: dict[str, Any] = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), no_dist=True, planner=_EmptyStateDictLoadPlanner())
    save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Convert a file of `torch.save` to a folder of `torch.distributed.checkpoint.save`.

    As in PyTorch, reading the file may run code: convert only trusted files.
    """
    _save_state_dict(load(torch_save_path, weights_only=False), FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"], help="Conversion mode")
    _parser.add_argument("src", help="Path to the source model")
    _parser.add_argument("dst", help="Path to the destination model")
    _args = _parser.parse_args()
    print(f"Converting checkpoint from {_args.src} to {_args.dst} using method: '{_args.mode}'")
    (torch_save_to_dcp if _args.mode == "torch_to_dcp" else dcp_to_torch_save)(_args.src, _args.dst)
