"""`FileSystemWriter` and `FileSystemReader`: checkpoints in a folder, in PyTorch's format."""

from __future__ import annotations

import io
import os
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from tinytorch._atomic import replacing
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.warning import warn
from tinytorch.distributed.checkpoint import metadata as metadata_file
from tinytorch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta, _StorageInfo
from tinytorch.distributed.checkpoint.planners import LoadPlanner, ReadItem, SavePlanner, WriteItem
from tinytorch.serialization import load, save

__all__ = ["FileSystemReader", "FileSystemWriter"]

CURRENT_DCP_VERSION = "1.0.0"
_METADATA = ".metadata"
Written = dict[MetadataIndex, _StorageInfo]


class _Folder:
    """The base class of the writer and the reader."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """Return the folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return whether a folder of this name exists, or can be created."""
        if isinstance(checkpoint_id, str) and "://" in checkpoint_id:
            return False
        path = Path(checkpoint_id)
        return any(folder.exists() and os.access(folder, os.W_OK) for folder in (path, *path.parents))


class FileSystemWriter(_Folder):
    """Writes a checkpoint to a folder; `save` calls the methods in the order of their definition here.

    The files of each rank get unused names, and are synced to disk; then `.metadata`, which names them, is replaced
    atomically; then the files of the previous checkpoint are removed. So the folder always has a complete checkpoint,
    the old or the new one, even if a process is killed.

    Args:
        path: the folder, which all ranks must be able to access; it is created if it does not exist.
        single_file_per_rank: False: write a file for each entry.
        sync_files, per_thread_copy_ahead, cache_staged_state_dict: accepted, without effect; files are always synced.
        thread_count: the number of threads that write, each a file.
        overwrite: False: raise an error, instead of a warning, if the folder has a checkpoint.

    Example:
        >>> import tempfile
        >>> import tinytorch.distributed.checkpoint as dcp
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = dcp.FileSystemWriter(folder, single_file_per_rank=False)
        ...     _ = dcp.save({"x": torch.ones(2), "y": torch.ones(3)}, storage_writer=writer)
        ...     metadata = dcp.FileSystemReader(folder).read_metadata()
        >>> {name: entry.size for name, entry in metadata.state_dict_metadata.items()}
        {'x': torch.Size([2]), 'y': torch.Size([3])}
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        super().__init__(path)
        self.single_file_per_rank, self.thread_count, self.overwrite = single_file_per_rank, thread_count, overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for a new checkpoint, in another folder if `checkpoint_id` is not None."""
        self.path = Path(checkpoint_id or self.path)
        self.save_id = str(uuid.uuid4())

    def prepare(self) -> None:
        """Create the folder; RuntimeError if it has a checkpoint, and `overwrite` is False."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _METADATA).exists():
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since {self.overwrite=}. "
                "Past version 2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to "
                "maintain this functionality or False to raise when an existing checkpoint is found."
            )

    def write(self, items: list[WriteItem], rank: int, planner: SavePlanner) -> Written:
        """Write the items of a rank, and return their locations."""
        used = {file.name for file in self.path.glob(f"__{rank}_*")}
        unused = (name for n in range(2**63) if (name := f"__{rank}_{n}.distcp") not in used)
        if self.single_file_per_rank:
            files: list[list[WriteItem]] = [[] for _ in range(self.thread_count)]
            sizes = [0] * self.thread_count
            for item in sorted(items, key=lambda item: -item.nbytes):
                smallest = sizes.index(min(sizes))
                files[smallest].append(item)
                sizes[smallest] += item.nbytes
        else:
            files = [[item] for item in items]

        def write(name: str, items: list[WriteItem]) -> Written:
            with replacing(self.path / name) as file:
                return {item.index: _write_item(file, name, item, planner) for item in items}

        with ThreadPoolExecutor(self.thread_count) as threads:
            written = list(threads.map(write, unused, filter(None, files)))
        return {index: info for part in written for index, info in part.items()}

    def finish(self, metadata: Metadata, results: list[Written]) -> None:
        """Write `.metadata`, and remove the files of the previous checkpoint."""
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {index: info for part in results for index, info in part.items()}
        metadata.storage_meta = StorageMeta(str(self.path), self.save_id)
        with replacing(self.path / _METADATA) as file:
            metadata_file.write(metadata, file)
        used = {info.relative_path for info in metadata.storage_data.values()}
        for path in self.path.glob("__*.distcp"):
            if re.fullmatch(r"__\d+_\d+\.distcp", path.name) and path.name not in used:
                path.unlink(missing_ok=True)


def _write_item(file: IO[bytes], name: str, item: WriteItem, planner: SavePlanner) -> _StorageInfo:
    start = file.tell()
    data = planner.resolve_data(item)
    if isinstance(data, io.BytesIO):
        file.write(data.getbuffer())
    else:
        data = data.detach()
        storage: Any = data.untyped_storage()  # `save` would write all of it, also for a view
        save(data if storage.nbytes() == data.nbytes else data.clone(), file)
    return _StorageInfo(name, start, file.tell() - start)


class FileSystemReader(_Folder):
    """Reads a checkpoint from a folder; `load` calls the methods in the order of their definition here.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.reset()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare to read a checkpoint, in another folder if `checkpoint_id` is not None."""
        self.path = Path(checkpoint_id or self.path)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the checkpoint's metadata. No code from the file runs.

        Raises:
            FileNotFoundError: the folder has no checkpoint.
            pickle.UnpicklingError: the file is damaged, or contains other classes.
        """
        with open(self.path / _METADATA, "rb") as file:
            metadata = metadata_file.read(file)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    @no_grad()
    def read(self, metadata: Metadata, items: list[ReadItem], planner: LoadPlanner) -> None:
        """Read items, file by file."""
        files: dict[str, list[tuple[_StorageInfo, ReadItem]]] = {}
        for item in items:
            info = metadata.storage_data[item.index]
            files.setdefault(info.relative_path, []).append((info, item))
        for name, parts in files.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise RuntimeError(f"the checkpoint in {self.path} names a file that lies elsewhere: {name}")
            with open(self.path / name, "rb") as file:
                for info, item in sorted(parts, key=lambda pair: pair[0].offset):
                    file.seek(info.offset)
                    _load_item(io.BytesIO(file.read(info.length)), info, item, planner)


def _load_item(content: io.BytesIO, info: _StorageInfo, item: ReadItem, planner: LoadPlanner) -> None:
    name = item.index.fqn
    if info.transform_descriptors:
        raise NotImplementedError(f"{name} is saved by extensions: {', '.join(info.transform_descriptors)}")
    if content.getbuffer().nbytes != info.length:
        raise RuntimeError(f"{info.relative_path} ends within {name}: the checkpoint is damaged")
    if item.lengths is None:
        planner.load_bytes(item, content)
        return
    saved, target = load(content), planner.resolve_tensor(item).detach()
    if target.size() != saved.size():
        raise AssertionError(f"req {item.index} mismatch sizes {target.size()} vs {saved.size()}")
    target.copy_(saved)


# The base classes of all storage, which are abstract in PyTorch.
StorageReader = FileSystemReader
StorageWriter = FileSystemWriter
