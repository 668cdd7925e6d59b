"""Plans of what each rank writes or reads: each entry of nested dicts is written by one rank, and read by all.

`{"model": {"weight": x}}` has the entry "model.weight". `DefaultSavePlanner` and `DefaultLoadPlanner` make the plans;
these are the base classes of other planners, too.
"""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
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

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """The kinds of items to write: a tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """The kinds of items to read: a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The size of bytes to write."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The description of a tensor to write: the chunk, and the properties and shape of the whole tensor."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """An item to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the size of a tensor in bytes; None for other objects."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """An item to read: a part of a saved entry, and its destination."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """The items that a rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """The items that a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


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


def _full_chunk(tensor: Tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.shape))


def narrow_tensor_by_index(tensor: Tensor, offsets: Iterable[int], sizes: Iterable[int]) -> Tensor:
    """Return a part of a tensor as a view."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if size < tensor.size(dim):
            tensor = tensor.narrow(dim, offset, size)
    return tensor


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

    def create_local_plan(self) -> SavePlan:
        """Return the plan to write all entries."""
        self.plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            self.plan = dataclasses.replace(self.plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return the final plan of each rank, and the metadata of the checkpoint."""
        plans = _deduplicated(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, self.metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            self.metadata.planner_data = {}
            for plan in reversed(all_plans):
                self.metadata.planner_data.update(plan.planner_data)
        return self.global_plan, self.metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Store the final plan of this rank, and return it."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return the tensor of an item, or the bytes of `torch.save` for another object."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Return an entry of the state."""
        return self.state_dict[index.fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Return the tensor or bytes to write for an entry."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        content = io.BytesIO()
        save(object, content)
        return content


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Return the plan in which a rank writes all of its entries."""
    items = []
    for name, value in state_dict.items():
        if isinstance(value, Tensor):
            chunk = _full_chunk(value)
            data = TensorWriteData(chunk, TensorProperties.create_from_tensor(value), chunk.sizes)
            items.append(WriteItem(MetadataIndex(name, chunk.offsets), WriteItemType.TENSOR, tensor_data=data))
        else:
            items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO))
    return SavePlan(items)


def _deduplicated(plans: list[SavePlan], to_lowest_rank: bool) -> list[SavePlan]:
    """Return plans in which each item occurs once: in the plan with the fewest bytes so far that contained it."""
    ranks: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            ranks.setdefault(item.index, []).append(rank)
            sizes[item.index] = item.tensor_storage_size() or 1  # (sizes of other objects are unknown)
    load = [0] * len(plans)
    writer = {}
    for index, owners in ranks.items():
        writer[index] = owners[0] if to_lowest_rank else min(owners, key=load.__getitem__)
        load[writer[index]] += sizes[index]
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Return the plans with the index of each item's chunk, and the metadata of the checkpoint."""
    entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}

    def add_entry(item: WriteItem) -> WriteItem:
        name, data = item.index.fqn, item.tensor_data
        if item.type is not WriteItemType.SHARD and name in entries:
            raise AssertionError(f"two ranks write {name}")
        if item.type is WriteItemType.BYTE_IO:
            entries[name] = BytesStorageMetadata()
            return item
        assert data is not None
        entry = entries.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
        assert isinstance(entry, TensorStorageMetadata)
        entry.chunks.append(data.chunk)
        if not rewrite_index_hints:
            return item
        return dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(entry.chunks) - 1))

    plans = [dataclasses.replace(plan, items=[add_entry(item) for item in plan.items]) for plan in all_plans]
    return plans, Metadata(entries)


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

    def create_local_plan(self) -> LoadPlan:
        """Return the plan to read all entries."""
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans unchanged."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Return the plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Store an unpickled object in the state. As in PyTorch, this may run code: load only trusted checkpoints."""
        name, entry = read_item.dest_index.fqn, load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], entry)
        else:
            self.state_dict[name] = entry

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return the tensor, or the part of one, that an item is read into."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Do nothing: the tensor has been loaded in place."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Return a tensor of the state."""
        return self.state_dict[index.fqn]

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Return the part of a tensor that an item is read into."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


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


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """Return the plan in which a rank reads all of its entries."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        elif isinstance(entry, BytesStorageMetadata):
            index, zero = MetadataIndex(name), Size([0])
            items.append(ReadItem(LoadItemType.BYTE_IO, index, zero, index, zero, zero))
        elif not isinstance(value, Tensor):
            raise ValueError(
                f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found {type(entry)}"
            )
        elif entry.size != value.size():
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.size()} for {name}")
        else:  # the state has the whole tensor, which may be saved in chunks
            whole, start = MetadataIndex(name, [0] * value.dim(), 0), Size([0] * value.dim())
            for i, chunk in enumerate(entry.chunks):
                source = MetadataIndex(name, chunk.offsets, i)
                items.append(ReadItem(LoadItemType.TENSOR, whole, chunk.offsets, source, start, chunk.sizes))
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans unchanged: each rank reads its own entries."""
    return all_plans


# The base classes of all planners, which are abstract in PyTorch.
SavePlanner = DefaultSavePlanner
LoadPlanner = DefaultLoadPlanner
