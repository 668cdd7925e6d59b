"""Train a convolutional network on FashionMNIST in several processes, on one machine or many.

    python -m tinytorch.distributed.run --nproc-per-node 2 examples/ddp_cnn.py
    python -m tinytorch.distributed.run --nproc-per-node 2 examples/ddp_cnn.py --checkpoint cnn
    python examples/ddp_cnn.py --quick
    python examples/ddp_cnn.py --help

Each process has a copy of the network and its part of each batch; their gradients are averaged while
the backward pass still goes on. What they learn is what one process learns from the whole batches. After
each epoch all of them write a checkpoint to the folder --checkpoint, and training goes on from the one
that is there, with any number of processes. The data is downloaded (30 MB) to --data if it is not there;
if it cannot be, drawn pictures take its place (--dataset). Ctrl-C ends the training.

Sources: Li et al., PyTorch Distributed, 2020; He et al., Deep residual learning, 2015.
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
    """Two convolutions, and what they are given added to what they make: the same shape out as in."""

    def __init__(self, width):
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(2, width),  # (knows nothing of the batch, which is in parts here)
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(2, width),
        )

    def forward(self, x):
        """Return (B, width, H, W), given (B, width, H, W)."""
        return nn.functional.relu(x + self.steps(x))


def network(width):
    """Return a network: a picture of 28 x 28 pixels in, a score for each of the ten classes out."""
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
    """Return the sums of the processes' numbers."""
    numbers = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(numbers)
    return numbers.tolist()


def train(dataloader, model, optimizer):
    """Show the model every picture once, and return the mean of the losses."""
    model.train()
    losses = 0.0
    for X, y in dataloader:
        loss = nn.functional.cross_entropy(model(X), y)
        optimizer.zero_grad()
        loss.backward()  # the gradients are the means of all processes' when it returns
        optimizer.step()
        losses += loss.item()
    losses, batches = total(losses, len(dataloader))
    return losses / batches


def test(data, model):
    """Return the share of the pictures that the model names rightly: each process looks at its part of them."""
    model.eval()
    part = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
    correct = 0
    with torch.no_grad():
        for X, y in DataLoader(part, batch_size=500):
            correct += (model(X).argmax(1) == y).sum().item()
    correct, pictures = total(correct, len(part))
    return correct / pictures


def load_data(args):
    """Return the pictures to learn from, those to test with, and what is to be said of them."""
    if args.torchvision:
        from torchvision.datasets import FashionMNIST as Fashion
        from torchvision.transforms import ToTensor
    else:
        from tinytorch.data import fashion_or_drawn
        from tinytorch.data.transforms import ToTensor

        Fashion = fashion_or_drawn(args.data, args.dataset)
    data = [Fashion(root=args.data, train=train, download=True, transform=ToTensor()) for train in (True, False)]
    if args.quick:
        data = [Subset(each, range(min(2000, len(each)))) for each in data]
    return *data, getattr(Fashion, "notice", None)  # drawn pictures say that they are


def parse(argv):
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--data", default=os.environ.get("TINYTORCH_DATA", "data"), help="folder of the data")
    option("--epochs", type=int, default=5, help="how often to show every picture (5)")
    option("--batch-size", type=int, default=128, help="pictures per step, of all processes together (128)")
    option("--lr", type=float, default=3e-3, help="learning rate (0.003)")
    option("--width", type=int, default=16, help="channels of the first convolution (16)")
    option("--seed", type=int, default=0, help="of the first weights and the order (0)")
    option("--checkpoint", metavar="FOLDER", help="write checkpoints there, and go on from the one that is there")
    option(
        "--dataset",
        choices=("auto", "fashion", "drawn"),
        default="auto",
        help="fashion: FashionMNIST; drawn: pictures drawn here and now; auto: drawn ones if "
        "FashionMNIST is not there and cannot be downloaded (auto)",
    )
    option("--torchvision", action="store_true", help="read the data through torchvision")
    option("--quick", action="store_true", help="one epoch of 2,000 pictures, to see it run")
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
    """Do what the command line asks for."""
    args = parse(argv)
    try:
        training_data, test_data, notice = load_data(args)
    except (OSError, RuntimeError, ImportError) as error:
        sys.exit(f"ddp_cnn.py: cannot read the data in {args.data!r}: {error}")
    if "RANK" in os.environ:  # one of several processes, or one that torchrun started
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    processes = dist.get_world_size()
    if args.batch_size % processes:
        sys.exit(f"ddp_cnn.py: {processes} processes cannot share a batch of {args.batch_size}")
    if dist.get_rank() == 0:
        say = print
    else:
        say = str  # the first process speaks
    if notice:
        say(notice)

    torch.manual_seed(args.seed)
    model = DistributedDataParallel(network(args.width))  # all have the first one's weights
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {processes} process{'es' * (processes > 1)}")
    sampler = DistributedSampler(training_data, seed=args.seed)  # a part for this process
    dataloader = DataLoader(training_data, batch_size=args.batch_size // processes, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    done = 0
    if args.checkpoint and os.path.exists(os.path.join(args.checkpoint, ".metadata")):
        weights, state = get_state_dict(model, optimizer)
        everything = {"model": weights, "optimizer": state, "epoch": 0}
        dcp.load(everything, checkpoint_id=args.checkpoint)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
        done = everything["epoch"]
        say(f"going on after epoch {done}")

    start = time.perf_counter()
    for epoch in range(done + 1, args.epochs + 1):
        sampler.set_epoch(epoch)  # another order
        loss = train(dataloader, model, optimizer)
        accuracy = test(test_data, model.module)
        seconds = time.perf_counter() - start
        say(f"epoch {epoch}  loss {loss:.4f}  test accuracy {accuracy:.2%}  {seconds:.1f} s")
        if args.checkpoint:
            weights, state = get_state_dict(model, optimizer)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that there is one before
                dcp.save({"model": weights, "optimizer": state, "epoch": epoch}, checkpoint_id=args.checkpoint)
    if notice:
        say(notice)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
