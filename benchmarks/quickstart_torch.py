"""PyTorch's quickstart tutorial as a program: the counterpart of `train_fashion_mnist.py` in the benchmark.

python benchmarks/quickstart_torch.py --data data --epochs 5
"""

import argparse
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader


def load_torchvision():
    """Return torchvision, also if PyTorch is a CPU build and torchvision is not.

    The import of torchvision then fails, since it registers derivatives of two operators that do not exist.
    """
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # left behind by the failed import
        for name in ("nms", "qnms"):
            signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", signature)
        import torchvision

    return torchvision


class NeuralNetwork(nn.Module):
    """A classifier of images of 28 x 28 pixels, which returns a score for each of ten classes."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(28 * 28, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )

    def forward(self, x):
        """Return the scores, (B, 10), of the images `x`, (B, 1, 28, 28)."""
        return self.linear_relu_stack(self.flatten(x))


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 100 == 0:
            print(f"loss: {loss.item():>7f}  [{(batch + 1) * len(X):>5d}/{size:>5d}]")


def test(dataloader, model, loss_fn):
    model.eval()
    test_loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, y in dataloader:
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    accuracy, test_loss = correct / len(dataloader.dataset), test_loss / len(dataloader)
    print(f"Test Error: \n Accuracy: {100 * accuracy:>0.1f}%, Avg loss: {test_loss:>8f} \n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TINYTORCH_DATA", "data"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", default="model_torch.pth")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    torchvision = load_torchvision()
    make, to_tensor = torchvision.datasets.FashionMNIST, torchvision.transforms.ToTensor()
    training_data = make(root=args.data, train=True, download=True, transform=to_tensor)
    test_data = make(root=args.data, train=False, download=True, transform=to_tensor)
    train_dataloader = DataLoader(training_data, batch_size=args.batch_size)
    test_dataloader = DataLoader(test_data, batch_size=args.batch_size)
    model = NeuralNetwork()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        print(f"Epoch {epoch + 1}\n-------------------------------")
        train(train_dataloader, model, loss_fn, optimizer)
        test(test_dataloader, model, loss_fn)
    print("Done!")
    torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
