"""ResNet-18, one text run with both libraries: PyTorch's weights through a file, the same logits and gradients."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch


def resnet18(torch, classes=10):
    """Return the network of He et al., "Deep residual learning for image recognition", 2015, with 18 layers."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
                )

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += x if self.downsample is None else self.downsample(x)
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
            self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
            self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
            self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
            self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(512, classes)
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(torch.flatten(self.avgpool(x), 1))

    return ResNet()


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Return tinytorch's network with PyTorch's weights, which came by file, and PyTorch's."""
    path = tmp_path_factory.mktemp("resnet") / "resnet18.pth"
    torch.manual_seed(0)
    theirs = resnet18(torch)
    with torch.no_grad():  # statistics as after some training
        for module in theirs.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)
    torch.save(theirs.state_dict(), path)
    ours = resnet18(tinytorch)
    found = ours.load_state_dict(tinytorch.load(path))
    assert str(found) == "<All keys matched successfully>"
    return ours, theirs


def step(library, model, pictures):
    """Return the logits, and the gradients of the input and of all parameters, as arrays."""
    x = library.from_numpy(pictures.copy()).requires_grad_()
    y = library.arange(len(pictures)) % 10
    model.zero_grad()
    logits = model(x)
    library.nn.functional.cross_entropy(logits, y).backward()
    gradients = {name: each.grad.numpy() for name, each in model.named_parameters()}
    return logits.detach().numpy(), {"the input": x.grad.numpy(), **gradients}


@needs_oracle
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize(("dtype", "to_logits", "to_gradients"), [("float32", 1e-4, 1e-3), ("float64", 1e-10, 1e-8)])
def test_logits_and_gradients_are_pytorchs(pair, dtype, to_logits, to_gradients, training):
    # With these, no unit of the last layers is so near its bend that rounding moves it over: one of a thousand counts.
    pictures = np.random.default_rng(30).standard_normal((2, 3, 64, 64)).astype(dtype)
    outcomes = [
        step(library, copy.deepcopy(model).to(getattr(library, dtype)).train(training), pictures)
        for library, model in zip((tinytorch, torch), pair, strict=True)
    ]
    (our_logits, our_gradients), (their_logits, their_gradients) = outcomes
    scale = abs(their_logits).max()
    np.testing.assert_allclose(our_logits, their_logits, rtol=to_logits, atol=to_logits * scale)
    assert list(our_gradients) == list(their_gradients)
    assert len(our_gradients) == 63
    for name, expected in their_gradients.items():
        error = np.linalg.norm(our_gradients[name] - expected) / np.linalg.norm(expected)
        assert error < to_gradients, f"{name}: {error}"


@needs_oracle
def test_training_changes_the_statistics_as_pytorchs(pair):
    pictures = np.random.default_rng(1).standard_normal((2, 3, 64, 64), dtype=np.float32)
    ours, theirs = map(copy.deepcopy, pair)
    for library, model in ((tinytorch, ours), (torch, theirs)):
        with library.no_grad():
            model.train()(library.from_numpy(pictures))
    expected = dict(theirs.named_buffers())
    for name, buffer in ours.named_buffers():
        np.testing.assert_allclose(buffer.numpy(), expected[name].numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


@needs_oracle
def test_its_weights_from_the_same_seed_are_pytorchs():
    for library in (tinytorch, torch):
        library.manual_seed(3)
    ours, theirs = resnet18(tinytorch).state_dict(), resnet18(torch).state_dict()
    assert list(ours) == list(theirs)
    assert len(ours) == 122
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name].numpy(), expected.numpy(), rtol=1e-5, atol=1e-7)


def test_its_size():
    found = tinytorch.summary(resnet18(tinytorch, classes=1000), (1, 3, 224, 224))
    assert found.total_parameters == 11_689_512
    assert round(found.multiply_adds / 1e6) == 1814  # 1.8 billion, says the paper
