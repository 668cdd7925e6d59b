"""Train a convolutional network on FashionMNIST in several processes.

    python -m tinytorch.distributed.run --nproc-per-node 2 examples/ddp_cnn.py
    python examples/ddp_cnn.py --checkpoint cnn
    python examples/ddp_cnn.py --quick
    python examples/ddp_cnn.py --help

Each process has a copy of the network and a share of each batch; the gradients
are averaged during the backward pass. The result is that of one process with
the whole batches. After each epoch all processes write a checkpoint to the
folder --checkpoint, from which training is resumed with any number of
processes. The data (30 MB) is downloaded to --data if it is not there; if that
fails, generated images are used (--dataset). Ctrl-C ends the training.

Sources: Li et al., PyTorch Distributed, 2020; He et al., Deep residual
learning, 2015.
"""

import argparse
import math
import os
import sys
import time
import warnings

import tinytorch as torch
import tinytorch.distributed.checkpoint as dcp
from tinytorch import distributed as dist
from tinytorch import nn
from tinytorch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from tinytorch.nn.parallel import DistributedDataParallel
from tinytorch.utils.data import DataLoader, DistributedSampler, Subset


class Block(nn.Module):
    """A residual block of two convolutions, which keeps the shape."""

    def __init__(self, width):
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(2, width),  # (independent of the batch, which is split here)
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(2, width),
        )

    def forward(self, x):
        """Return the output, (B, width, H, W), for `x`, (B, width, H, W)."""
        return nn.functional.relu(x + self.steps(x))


def network(width):
    """Return a classifier of images of 28 x 28 pixels, with a score for each of ten classes."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1),  # (B, width, 14, 14)
        Block(width),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),  # (B, 2 width, 7, 7)
        Block(2 * width),
        nn.AvgPool2d(7),  # (B, 2 width, 1, 1)
        nn.Flatten(),
        nn.Linear(2 * width, 10),
    )


def total(*numbers):
    """Return the sums of numbers over all processes."""
    numbers = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(numbers)
    return numbers.tolist()


def train(dataloader, model, optimizer):
    """Train the model for one epoch, and return the mean of the losses."""
    model.train()
    losses = 0.0
    for X, y in dataloader:
        loss = nn.functional.cross_entropy(model(X), y)
        optimizer.zero_grad()
        loss.backward()  # also averages the gradients over all processes
        optimizer.step()
        losses += loss.item()
    losses, batches = total(losses, len(dataloader))
    return losses / batches


def test(data, model):
    """Return the accuracy of the model; each process evaluates its share of the images."""
    model.eval()
    share = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
    correct = 0
    with torch.no_grad():
        for X, y in DataLoader(share, batch_size=500):
            correct += (model(X).argmax(1) == y).sum().item()
    correct, images = total(correct, len(share))
    return correct / images


def load_data(args):
    """Return the training data, the test data, and a notice to print, or None."""
    if args.torchvision:
        from torchvision.datasets import FashionMNIST as Fashion
        from torchvision.transforms import ToTensor
    else:
        from tinytorch.data import fashion_or_drawn
        from tinytorch.data.transforms import ToTensor

        Fashion = fashion_or_drawn(args.data, args.dataset)
    data = [Fashion(root=args.data, train=train, download=True, transform=ToTensor()) for train in (True, False)]
    if args.quick:
        data = [Subset(images, range(min(2000, len(images)))) for images in data]
    return *data, getattr(Fashion, "notice", None)  # that the images are generated


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--data", default=os.environ.get("TINYTORCH_DATA", "data"), help="the folder of the data")
    option("--epochs", type=int, default=5, help="the number of epochs (5)")
    option("--batch-size", type=int, default=128, help="images per step, over all processes (128)")
    option("--lr", type=float, default=3e-3, help="learning rate (0.003)")
    option("--width", type=int, default=16, help="the channels of the first convolution (16)")
    option("--seed", type=int, default=0, help="the seed of the initial weights and the shuffling (0)")
    option("--checkpoint", metavar="FOLDER", help="write checkpoints there, and resume from the existing one")
    option(
        "--dataset",
        choices=("auto", "fashion", "drawn"),
        default="auto",
        help="fashion: FashionMNIST; drawn: generated images; auto: generated images if "
        "FashionMNIST is not in the folder and cannot be downloaded (auto)",
    )
    option("--torchvision", action="store_true", help="read the data through torchvision")
    option("--quick", action="store_true", help="one epoch on 2,000 images, as a short test")
    args = parser.parse_args(argv)
    if args.torchvision and args.dataset == "drawn":
        parser.error("argument --torchvision: not allowed with --dataset drawn")
    if args.quick:
        args.epochs = 1
    for name in ("epochs", "batch_size", "lr", "width"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"ddp_cnn.py: cannot read the data in {args.data!r}: {getattr(error, 'brief', error)}")
    if "RANK" in os.environ:  # a process that torchrun started
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    processes = dist.get_world_size()
    if args.batch_size % processes:
        sys.exit(f"ddp_cnn.py: {processes} processes cannot share a batch of {args.batch_size}")
    say = print if dist.get_rank() == 0 else str  # only the first process prints
    if notice:
        say(notice)

    torch.manual_seed(args.seed)
    model = DistributedDataParallel(network(args.width))  # all processes get the weights of the first
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {processes} process{'es' * (processes > 1)}")
    sampler = DistributedSampler(training_data, seed=args.seed)  # the indices of this process
    dataloader = DataLoader(training_data, batch_size=args.batch_size // processes, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    done = 0
    if args.checkpoint and os.path.exists(os.path.join(args.checkpoint, ".metadata")):
        weights, state = get_state_dict(model, optimizer)
        checkpoint = {"model": weights, "optimizer": state, "epoch": 0}
        dcp.load(checkpoint, checkpoint_id=args.checkpoint)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
        done = checkpoint["epoch"]
        say(f"going on after epoch {done}")

    start = time.perf_counter()
    for epoch in range(done + 1, args.epochs + 1):
        sampler.set_epoch(epoch)  # changes the shuffled order
        loss = train(dataloader, model, optimizer)
        accuracy = test(test_data, model.module)
        seconds = time.perf_counter() - start
        say(f"epoch {epoch}  loss {loss:.4f}  test accuracy {accuracy:.2%}  {seconds:.1f} s")
        if args.checkpoint:
            weights, state = get_state_dict(model, optimizer)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a checkpoint is overwritten
                dcp.save({"model": weights, "optimizer": state, "epoch": epoch}, checkpoint_id=args.checkpoint)
    if notice:
        say(notice)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
