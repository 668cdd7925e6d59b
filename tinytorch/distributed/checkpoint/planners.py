"""What each rank writes and reads: each entry of nested dicts is written by one rank, and read by all.

`{"model": {"weight": x}}` has the entry "model.weight". `DefaultSavePlanner` and `DefaultLoadPlanner` list the items;
these are the base classes of other planners, too.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from tinytorch.ops.create import empty
from tinytorch.serialization import load, save

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "LoadPlanner", "SavePlanner"]


@dataclass(frozen=True)
class WriteItem:
    """An entry to write: its index and, of a tensor, its description."""

    index: MetadataIndex
    tensor: TensorStorageMetadata | None

    @property
    def nbytes(self) -> int:
        """The size of a tensor, at least 1; 1 for other objects, whose sizes are unknown."""
        if self.tensor is None:
            return 1
        return max(math.prod(self.tensor.size) * self.tensor.properties.dtype.itemsize, 1)


@dataclass(frozen=True)
class ReadItem:
    """A saved entry, or a chunk of a tensor, to read: its index and, of a tensor, its shape."""

    index: MetadataIndex
    lengths: Size | None


# Entries of nested dicts and lists ----------------------------------------------------------------


def _is_leaf(value: Any) -> bool:
    """Return whether a value is one entry: anything except mappings, and lists that contain tensors or mappings."""
    if isinstance(value, list):
        return not any(isinstance(element, Tensor) or not _is_leaf(element) for element in value)
    return not isinstance(value, Mapping)


def flatten_state_dict(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, tuple[str | int, ...]]]:
    """Return the entries by name, and for each name its path of keys and indices."""
    flat: dict[str, Any] = {}
    paths: dict[str, tuple[str | int, ...]] = {}

    def visit(path: tuple[str | int, ...], value: Any) -> None:
        children: Iterable[tuple[Any, Any]]
        if isinstance(value, Mapping):
            children = ((str(key), child) for key, child in value.items())
        elif _is_leaf(value):
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path
            return
        else:
            children = enumerate(value)
        for key, child in children:
            visit((*path, key), child)

    visit((), dict(state_dict))
    return flat, paths


def set_element(root: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Set the value at a path, creating the dicts and lists on the way."""
    for i, key in enumerate(path):
        last = i == len(path) - 1
        if isinstance(key, int) and isinstance(root, list):
            root += [None] * (key + 1 - len(root))
            child = root[key]
        else:
            child = root.get(key)
        if last:
            root[key] = value
        elif child is None:
            root[key] = {} if isinstance(path[i + 1], str) else []
        root = root[key]


# Saving -------------------------------------------------------------------------------------------


class DefaultSavePlanner:
    """Decides which items each rank writes: the entries of nested dicts and lists, each once.

    `save` calls the methods in the order of their definition here.

    An entry of several ranks is written by the one with the fewest bytes to write so far. Derived classes override
    `lookup_object` or `transform_object` to save other objects.

    Args:
        flatten_state_dict: False: save the top-level entries, nested dicts as one entry.
        flatten_sharded_tensors, dedup_replicated_tensors, enable_plan_caching: accepted, without effect.
        dedup_save_to_lowest_rank: an entry of several ranks is written by the lowest of them.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, Any] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Set the state to save."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> list[WriteItem]:
        """Return the items of all entries."""
        items = []
        for name, value in self.state_dict.items():
            if isinstance(value, Tensor):
                chunk = ChunkStorageMetadata(Size([0] * value.dim()), Size(value.shape))
                tensor = TensorStorageMetadata(TensorProperties.create_from_tensor(value), chunk.sizes, [chunk])
                items.append(WriteItem(MetadataIndex(name, chunk.offsets, 0), tensor))
            else:
                items.append(WriteItem(MetadataIndex(name), None))
        return items

    def create_global_plan(
        self, all_plans: list[tuple[list[WriteItem], dict[str, Any]]]
    ) -> tuple[list[list[WriteItem]], Metadata]:
        """Return the items that each rank writes, and the metadata of the checkpoint.

        Args:
            all_plans: of each rank, the items and `mappings`.
        """
        owners: dict[MetadataIndex, list[int]] = {}
        sizes: dict[MetadataIndex, int] = {}
        for rank, (items, _) in enumerate(all_plans):
            for item in items:
                owners.setdefault(item.index, []).append(rank)
                sizes[item.index] = item.nbytes
        load = [0] * len(all_plans)
        writer = {}
        for index, ranks in owners.items():
            writer[index] = ranks[0] if self.dedup_save_to_lowest_rank else min(ranks, key=load.__getitem__)
            load[writer[index]] += sizes[index]
        plans = [[item for item in items if writer[item.index] == rank] for rank, (items, _) in enumerate(all_plans)]
        entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
        for item in chain.from_iterable(plans):
            if item.index.fqn in entries:
                raise AssertionError(f"two ranks write {item.index.fqn}")
            entries[item.index.fqn] = item.tensor or BytesStorageMetadata()
        paths = {name: path for _, mappings in reversed(all_plans) for name, path in mappings.items()}
        return plans, Metadata(entries, paths if self.flatten_state_dict else None)

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return the tensor of an item, or the bytes of `torch.save` for another object."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return an entry of the state."""
        return self.state_dict[index.fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return the tensor or bytes to write for an entry."""
        if write_item.tensor is not None:
            return object
        content = io.BytesIO()
        save(object, content)
        return content


# Loading ------------------------------------------------------------------------------------------


class DefaultLoadPlanner:
    """Decides which items each rank reads, and where to.

    Loads the entries of nested dicts and lists: tensors are loaded in place, other objects are replaced.

    Derived classes override `lookup_tensor` or `transform_tensor` to load into other tensors.

    Args:
        flatten_state_dict: the setting with which the checkpoint was saved.
        flatten_sharded_tensors: accepted, without effect.
        allow_partial_load: skip entries that are missing in the checkpoint, instead of raising an error.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load
        self.mappings: dict[str, Any] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Set the state to load into, and the checkpoint's metadata."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> list[ReadItem]:
        """Return the items of all entries."""
        assert self.metadata is not None
        items: list[ReadItem] = []
        for name, value in self.state_dict.items():
            entry = self.metadata.state_dict_metadata.get(name)
            if entry is None:
                if not self.allow_partial_load:
                    raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            elif isinstance(entry, BytesStorageMetadata):
                items.append(ReadItem(MetadataIndex(name), None))
            elif not isinstance(value, Tensor):
                raise ValueError(
                    f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found {type(entry)}"
                )
            elif entry.size != value.size():
                raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.size()} for {name}")
            else:  # the state has the whole tensor, which may be saved in chunks
                chunks = enumerate(entry.chunks)
                items += [ReadItem(MetadataIndex(name, chunk.offsets, i), chunk.sizes) for i, chunk in chunks]
        return items

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Store an unpickled object in the state. As in PyTorch, this may run code: load only trusted checkpoints."""
        name, entry = read_item.index.fqn, load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], entry)
        else:
            self.state_dict[name] = entry

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return the tensor, or the part of one, that an item is read into."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.index))

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Return a tensor of the state."""
        return self.state_dict[index.fqn]

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Return the part of a tensor that an item is read into, as a view."""
        for dim, (offset, size) in enumerate(zip(read_item.index.offset or (), read_item.lengths or (), strict=True)):
            tensor = tensor.narrow(dim, offset, size)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all entries of a checkpoint, or those that `keys` name, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _is_selected(self, name: str, path: tuple[Any, ...]) -> bool:
        prefixes = [name, *(".".join(map(str, path[:end])) for end in range(1, len(path)))]
        return self.keys is None or any(prefix in self.keys for prefix in prefixes)

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Create an entry in the state for each selected entry of the checkpoint."""
        assert not state_dict and metadata is not None
        for name, entry in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(name, (name,))
            if self._is_selected(name, path):
                value: Any = entry
                if isinstance(entry, TensorStorageMetadata):
                    value = empty(entry.size, dtype=entry.properties.dtype)
                set_element(state_dict, path, value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


# The base classes of all planners, which are abstract in PyTorch.
SavePlanner = DefaultSavePlanner
LoadPlanner = DefaultLoadPlanner
