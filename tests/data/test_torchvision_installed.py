"""torchvision as it is installed, on tinytorch: models, detection and transforms give what they give with PyTorch."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.data.vision_oracle import needs_torchvision

ROOT = str(Path(tinytorch.__file__).parent.parent)

#: What PyTorch's process does first: torchvision's operators, if its library is for another PyTorch, by definition.
DEFINITIONS = """
import torch
for name in ("nms", "qnms"):
    torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

def nms(dets, scores, threshold):
    area, kept = (dets[:, 2:] - dets[:, :2]).prod(1), []
    for i in scores.argsort(descending=True, stable=True).tolist():
        sides = torch.minimum(dets[i, 2:], dets[kept, 2:]) - torch.maximum(dets[i, :2], dets[kept, :2])
        both = sides.clamp(min=0).prod(1)
        if not (both / (area[i] + area[kept] - both) > threshold).any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)

import torchvision
import torchvision.ops.boxes
import importlib
if not torchvision.extension._has_ops():
    torch.library.impl("torchvision::nms", "default", nms)
    torchvision.ops.boxes._assert_has_ops = lambda: None
    regions = importlib.import_module("torchvision.ops.roi_align")
    plain = regions._roi_align.__wrapped__  # torchvision's own, in tensors, for compilers
    regions._roi_align, regions.is_compile_supported = plain, lambda kind: True
"""

BEGINNING = """
import pickle, sys, torch, torchvision, numpy
def plain(value):
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    return (value.mode, numpy.asarray(value)) if hasattr(value, "getbands") else value
torch.manual_seed(0)
"""

END = "pickle.dump(plain(found), open(sys.argv[1], 'wb'))"

PROGRAMS = {
    "models": """
    from torchvision import models
    found = {}
    for name in ["resnet18", "mobilenet_v3_small", "efficientnet_b0", "VisionTransformer"]:
        torch.manual_seed(0)
        if name == "VisionTransformer":
            model = models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=5).double()
        else:
            model = getattr(models, name)(weights=None, num_classes=5).double()
        images, labels = torch.rand(4, 3, 32, 32, dtype=torch.float64), torch.tensor([1, 3, 0, 4])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        weights = [p.detach().sum() for p in model.parameters()]
        with torch.no_grad():
            found[name] = [model.eval()(images), loss, weights, str(model)]
    """,
    "detection": """
    from torchvision.models import detection
    model = detection.fasterrcnn_mobilenet_v3_large_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=96, rpn_post_nms_top_n_train=60,
        rpn_post_nms_top_n_test=60, box_batch_size_per_image=32, box_score_thresh=0.01,
    ).double()
    for each in model.modules():
        if isinstance(each, torch.nn.BatchNorm2d):
            each.momentum = 1.0  # what it has seen is then what it expects
    images = [torch.rand(3, 60, 80, dtype=torch.float64), torch.rand(3, 70, 64, dtype=torch.float64)]
    boxes = [torch.tensor([[5.0, 5, 40, 50], [20, 10, 60, 30]]).double(), torch.tensor([[1.0, 2, 30, 60]]).double()]
    targets = [{"boxes": boxes[0], "labels": torch.tensor([1, 2])}, {"boxes": boxes[1], "labels": torch.tensor([4])}]
    losses = model(images, targets)
    sum(losses.values()).backward()
    gradients = [p.grad for p in model.roi_heads.parameters()] + [p.grad.abs().sum() for p in model.parameters()]
    torch.optim.SGD(model.parameters(), lr=1e-3).step()
    with torch.no_grad():
        found = [losses, gradients, model.eval()(images)]
    assert all(len(each["boxes"]) for each in found[2])
    """,
    "transforms": """
    from torchvision import transforms, tv_tensors
    from torchvision.transforms import v2
    from PIL import Image
    array = numpy.arange(24 * 20 * 3, dtype=numpy.uint8).reshape(24, 20, 3)
    found = []
    for module in (transforms, v2):
        step = module.Compose([
            module.RandomResizedCrop(16), module.RandomHorizontalFlip(), module.ColorJitter(0.4, 0.4, 0.4, 0.1),
            module.RandomRotation(20), module.RandAugment(), module.RandomInvert(),
        ])
        found += [step(Image.fromarray(array)), step(torch.tensor(array).permute(2, 0, 1)), repr(step)]
    image = tv_tensors.Image(torch.tensor(array).permute(2, 0, 1))
    boxes = tv_tensors.BoundingBoxes([[1, 2, 10, 12], [3, 3, 19, 20]], format="XYXY", canvas_size=(24, 20))
    mask = tv_tensors.Mask(torch.ones(2, 24, 20, dtype=torch.uint8))
    step = v2.Compose([
        v2.RandomHorizontalFlip(1.0), v2.RandomIoUCrop(), v2.RandomZoomOut(p=1.0), v2.Resize((12, 12)),
        v2.SanitizeBoundingBoxes(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25]),
    ])
    sample = step({"image": image, "boxes": boxes, "masks": mask, "labels": torch.tensor([1, 2])})
    found += [sample, [type(each).__name__ for each in sample.values()]]
    found.append(v2.MixUp(num_classes=3)(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])))
    """,
    "data and utils": """
    from torchvision import datasets, ops, transforms, utils
    data = datasets.FakeData(6, (3, 8, 9), 4, transforms.ToTensor())
    images, labels = next(iter(torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)))
    boxes = torch.rand(5, 4) * 10
    boxes[:, 2:] += boxes[:, :2]
    found = [
        images, labels, utils.make_grid(images, normalize=True), ops.box_iou(boxes, boxes.flip(0)),
        ops.generalized_box_iou_loss(boxes, boxes.flip(0), "mean"), ops.sigmoid_focal_loss(boxes, boxes.gt(5).float()),
        utils.draw_bounding_boxes(images[0], boxes / 4, colors="red"), ops.drop_block2d(images, 0.3, 3),
        list(ops.FeaturePyramidNetwork([3, 3], 4)({"a": images, "b": images[:, :, ::2, ::2]}).values()),
    ]
    """,
}


def close(ours: Any, theirs: Any, where: str = "result") -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for k, pair in enumerate(zip(ours, theirs, strict=True)):
            close(*pair, f"{where}[{k}]")
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, where
        # Bytes are rounded from sums in another order.
        atol = 1 if theirs.dtype == np.uint8 else 1e-5
        np.testing.assert_allclose(ours.astype(float), theirs.astype(float), 1e-4, atol, err_msg=where)
    else:
        assert ours == theirs, where


@needs_torchvision
@pytest.mark.parametrize("name", PROGRAMS)
def test_installed_torchvision(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEGINNING + textwrap.dedent(PROGRAMS[name]) + END, "utf-8")
    theirs = tmp_path / "theirs.py"
    theirs.write_text(DEFINITIONS + program.read_text("utf-8"), "utf-8")
    known = {**os.environ, "PYTHONPATH": ROOT, "PYTHONWARNINGS": "ignore"}
    found = []
    for command in (["-m", "tinytorch", str(program)], [str(theirs)]):
        result = tmp_path / "found.pickle"
        done = subprocess.run([sys.executable, *command, str(result)], capture_output=True, text=True, env=known)
        assert done.returncode == 0, done.stderr
        found.append(pickle.loads(result.read_bytes()))
    close(*found)
