"""`torch._inductor.config`: settings without effect; programs write others as they like."""

import types

debug = False
max_autotune = False
coordinate_descent_tuning = False
force_fuse_int_mm_with_mul = False
fx_graph_cache = True
conv_1x1_as_mm = False
epilogue_fusion = True
shape_padding = True
triton = types.SimpleNamespace(unique_kernel_names=True, cudagraphs=False)
cpp = types.SimpleNamespace(threads=-1)
