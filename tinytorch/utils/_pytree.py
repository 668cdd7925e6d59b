"""PyTorch's name, `torch.utils._pytree`, for `tinytorch.func.pytree` (floor 4)."""

from tinytorch.func.pytree import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    TreeSpec,
    keystr,
    map_only,
    register_pytree_node,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
)
from tinytorch.func.pytree import flatten as tree_flatten
from tinytorch.func.pytree import unflatten as tree_unflatten

__all__ = [
    "GetAttrKey", "MappingKey", "SequenceKey", "TreeSpec", "keystr", "map_only", "register_pytree_node", "tree_all",
    "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten",
]  # fmt: skip

_register_pytree_node = register_pytree_node
