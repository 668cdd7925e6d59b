"""Graphs of torchvision's models, with PyTorch and with tinytorch in PyTorch's place."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.oracle import needs, needs_oracle

MODELS = """
    alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5
    mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnext50_32x4d shufflenet_v2_x0_5
    squeezenet1_0 swin_t swin_v2_t vgg11_bn vit_b_16 wide_resnet50_2 segmentation.deeplabv3_mobilenet_v3_large
    segmentation.fcn_resnet50 segmentation.lraspp_mobilenet_v3_large
"""
START = """
import operator, warnings
import torch
warnings.simplefilter("ignore")
if not torch.__version__.count("tinytorch"):  # (its compiled part is for another build of PyTorch)
    for name in ("nms", "qnms"):
        torch.library.define("torchvision::" + name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchvision import models
"""
GRAPHS = """
for name in NAMES.split():
    options = {"weights": None}
    options |= {"weights_backbone": None} if "." in name else {}
    options |= {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("cpu" if name.startswith("regnet") else "meta"):  # (its sizes are computed by tensors)
        model = operator.attrgetter(name)(models)(**options)
    module = torch.fx.symbolic_trace(model)
    print(name, *[node.name for node in module.graph.nodes])
    print(module.graph)
    print(module.code)
"""
FEATURES = """
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names
for name, wanted, size in (
    ("resnet50", {"layer1": "a", "layer3.0.conv2": "b", "avgpool": "c"}, 32),
    ("efficientnet_b0", ["features.2", "features.5.0.block.1", "classifier.0"], 32),
    ("vit_b_32", ["encoder.layers.encoder_layer_3.mlp", "getitem_5"], 224),
):
    with torch.device("meta"):
        model = getattr(models, name)(weights=None)
    print(get_graph_node_names(model))
    extract = create_feature_extractor(model, return_nodes=wanted).eval()
    print(extract.graph, extract.code)
    with torch.device("meta"):
        print({key: tuple(value.shape) for key, value in extract(torch.zeros(1, 3, size, size)).items()})
"""


def printed(program: str, *options: str) -> str:
    """Return what a program prints."""
    text = f"NAMES = {MODELS!r}\n{START}{program}"
    run = subprocess.run([sys.executable, *options, "-c", text], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@needs_oracle
@needs("torchvision")
@pytest.mark.parametrize("program", [GRAPHS, FEATURES], ids=["graphs", "features"])
def test_torchvision_has_the_same_graphs(program: str) -> None:
    ours, theirs = printed(program, "-m", "tinytorch"), printed(program)
    assert len(theirs) > 10_000 and ours == theirs
