"""Train the model of PyTorch's quickstart on FashionMNIST; classify ten images.

  python train_fashion_mnist.py
  python train_fashion_mnist.py --epochs 10 --momentum 0.9
  python train_fashion_mnist.py --plot curves.png
  python train_fashion_mnist.py --resume model.checkpoint.pth --epochs 10
  python train_fashion_mnist.py --evaluate model.pth
  python -m tinytorch.distributed.run --nproc-per-node 2 train_fashion_mnist.py

The data (30 MB) is downloaded to --data if it is not there; if that fails,
generated images are used, and kept there (--dataset). --torchvision reads the
data through torchvision, which needs no PyTorch, or through tinytorch's
replacement if torchvision is not installed. After each epoch a checkpoint for
--resume is written beside the model; Ctrl-C stops at once and leaves the files
intact. Several processes share each batch; the result is that of one process.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile

from tqdm import tqdm

import tinytorch as torch
from tinytorch import distributed as dist
from tinytorch import inspect, nn
from tinytorch.nn.parallel import DistributedDataParallel
from tinytorch.utils.data import DataLoader, DistributedSampler

FIGURES = ("training loss", "training accuracy", "test loss", "test accuracy")  # of each epoch


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
        x = self.flatten(x)  # (B, 1, 28, 28) -> (B, 784)
        return self.linear_relu_stack(x)  # (B, 10)


def join():
    """Return the rank of this process and the number of processes: one, unless torchrun has started several."""
    if "WORLD_SIZE" not in os.environ:
        return 0, 1
    dist.init_process_group()
    if dist.get_rank():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (only the first process prints)
    return dist.get_rank(), dist.get_world_size()


def mean(x):
    """Return the mean of a tensor over all processes."""
    if dist.is_initialized():
        dist.all_reduce(x, dist.ReduceOp.AVG)
    return x


def stepping(model, loss_fn, optimizer):
    """Return a function that takes a training step on a batch, and returns the loss and the predictions."""

    def step(X, y):
        pred = model(X)
        loss = loss_fn(pred, y)

        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), pred.detach()

    return step


def train(dataloader, model, step, device, processes, no_progress):
    """Train the model for one epoch; return the mean loss and accuracy of every tenth batch."""
    size = len(dataloader.dataset)
    model.train()
    seen, measured = 0, []
    with inspect.progress(dataloader, unit="batch", disable=no_progress) as bar:
        for batch, (X, y) in enumerate(bar):
            X, y = X.to(device), y.to(device)

            loss, pred = step(X, y)

            seen += len(X) * processes
            if batch % 10 == 0:
                accuracy = (pred.argmax(1) == y).float().mean().item()
                measured.append((loss.item(), accuracy))
                bar.set_postfix(loss=f"{loss.item():.4f}", accuracy=f"{accuracy:.1%}")
            if batch % 100 == 0:
                tqdm.write(f"loss: {mean(loss).item():>7f}  [{seen:>5d}/{size:>5d}]")
    return [sum(values) / len(measured) for values in zip(*measured, strict=True)]


def test(dataloader, model, loss_fn, device):
    """Print the mean loss and the accuracy on the test data, and return them."""
    model.eval()
    test_loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).float().sum().item()
    accuracy, test_loss = correct / len(dataloader.dataset), test_loss / len(dataloader)
    print(f"Test Error: \n Accuracy: {100 * accuracy:>0.1f}%, Avg loss: {test_loss:>8f} \n")
    return test_loss, accuracy


def predict(data, model, device):
    """Print the predicted and the actual classes of the first ten images."""
    model.eval()
    X, y = next(iter(DataLoader(data, batch_size=10)))
    with torch.no_grad():
        pred = model(X.to(device)).argmax(1)
    for guess, actual in zip(pred, y, strict=True):
        print(f'Predicted: "{data.classes[guess]}", Actual: "{data.classes[actual]}"')


def plot(path, data, model, device, history):
    """Plot the curves of the training, and what the model makes of the test data."""
    model.eval()
    X, y = next(iter(DataLoader(data, batch_size=len(data))))
    with torch.no_grad():
        scores = model(X.to(device))
    inspect.plot_classifier(X, scores, y, data.classes, history).savefig(path)
    print(f"Plotted {path}")


def load_data(args):
    """Return the training data (None for --evaluate) and the test data."""
    if args.torchvision:
        if "torch" not in sys.modules:
            torch.compat.install()  # so that torchvision imports tinytorch as torch
        from torchvision.datasets import FashionMNIST as Fashion
        from torchvision.transforms import ToTensor
    else:
        from tinytorch.data import fashion_or_drawn
        from tinytorch.data.transforms import ToTensor

        Fashion = fashion_or_drawn(args.data, args.dataset)

    def load(train):
        return Fashion(root=args.data, train=train, download=True, transform=ToTensor())

    return None if args.evaluate else load(train=True), load(train=False)


def first_process_first(rank, function):
    """Return `function()`, which the other processes call after the first one, since it may download files."""
    if rank:
        dist.barrier()
    result = function()
    if not rank and dist.is_initialized():
        dist.barrier()
    return result


def resume(path, model, optimizer):
    """Load the states of the model and the optimizer from a checkpoint, and return its epoch and its history."""
    checkpoint = torch.load(path)
    if not (isinstance(checkpoint, dict) and {"epoch", "model", "optimizer"} <= checkpoint.keys()):
        raise ValueError("this is no checkpoint; a saved model goes with --evaluate")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"], checkpoint.get("history", {})


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--data", default=os.environ.get("TINYTORCH_DATA", "data"), help="the folder of the data")
    option(
        "--dataset",
        choices=("auto", "fashion", "drawn"),
        default="auto",
        help="fashion: FashionMNIST; drawn: generated images; auto: generated images if "
        "FashionMNIST is not in the folder and cannot be downloaded (auto)",
    )
    option("--epochs", type=int, default=5, help="the number of epochs (5)")
    option("--batch-size", type=int, default=64, help="images per step (64)")
    option("--lr", type=float, default=1e-3, help="learning rate (0.001)")
    option("--momentum", type=float, default=0.0, help="momentum (0)")
    option("--compile", action="store_true", help="compile the training step (torch.compile)")
    option("--seed", type=int, default=0, help="the seed of the initial weights (0)")
    option("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="where to compute (cpu)")
    option(
        "--save", metavar="FILE", help="the file of the model (model.pth, in a new folder if this one is not writable)"
    )
    option("--resume", metavar="FILE", help="resume from this checkpoint, up to --epochs")
    option("--evaluate", metavar="FILE", help="test this saved model instead of training")
    option("--plot", metavar="FILE", help="plot curves, confusion and mistakes (pip install matplotlib)")
    option(
        "--torchvision",
        action="store_true",
        help="read the data through torchvision (pip install --no-deps torchvision pillow)",
    )
    option("--no-progress", action="store_true", help="no progress bar")
    args = parser.parse_args(argv)
    if args.torchvision and args.dataset == "drawn":
        parser.error("argument --torchvision: not allowed with --dataset drawn")
    return args


@contextlib.contextmanager
def or_exit(doing):
    """Report an error in the user's input by one line and exit status 2."""
    try:
        yield
    except Exception as error:
        text = " ".join(getattr(error, "brief", str(error)).split())
        print(f"train_fashion_mnist.py: {doing}: {text}", file=sys.stderr)
        sys.exit(2)


def main(argv=None):
    """Run the command line."""
    args = parse(argv)
    rank, processes = join()
    if args.save is None:
        folder = "" if os.access(".", os.W_OK) else tempfile.mkdtemp(prefix="fashion-mnist-")
        args.save = os.path.join(folder, "model.pth")
    checkpoint_file = os.path.splitext(args.save)[0] + ".checkpoint.pth"

    if args.plot:
        with or_exit(f"cannot plot to {args.plot!r}"):
            inspect.check_plot(args.plot)  # fail now instead of after the training
    with or_exit(f"cannot use --device {args.device}"):
        device = torch.device(args.device)
        torch.manual_seed(args.seed)
        model = NeuralNetwork().to(device)
    with or_exit(f"cannot read the data in {args.data!r}"):
        training_data, test_data = first_process_first(rank, lambda: load_data(args))
    with or_exit("cannot use these settings"):
        test_dataloader = DataLoader(test_data, batch_size=args.batch_size)
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
        if args.epochs < 0:
            raise ValueError(f"--epochs should not be negative, but got {args.epochs}")
        if args.batch_size % processes:
            raise ValueError(f"{processes} processes cannot share a batch of {args.batch_size}")
    loss_fn = nn.CrossEntropyLoss()

    notice = getattr(test_data, "notice", None)  # that the images are generated
    if notice:
        print(notice)
    print(f"Using {device} device")
    print(model)

    if args.evaluate:
        with or_exit(f"cannot load the model {args.evaluate!r}"):
            model.load_state_dict(torch.load(args.evaluate))
        test(test_dataloader, model, loss_fn, device)
        predict(test_data, model, device)
        if args.plot:
            plot(args.plot, test_data, model, device, {})
        if notice:
            print(notice)
        return

    with or_exit(f"cannot save to {args.save!r}"):  # fail now instead of after the training
        new = not os.path.exists(args.save)
        open(args.save, "ab").close()
        if new and not rank:
            os.remove(args.save)
    first_epoch, history = 0, {}
    if args.resume:
        with or_exit(f"cannot resume from {args.resume!r}"):
            first_epoch, history = resume(args.resume, model, optimizer)
        print(f"Resuming after epoch {first_epoch}")

    sampler, trained = None, model
    if processes > 1:
        sampler, trained = DistributedSampler(training_data, shuffle=False), DistributedDataParallel(model)
    train_dataloader = DataLoader(training_data, batch_size=args.batch_size // processes, sampler=sampler)
    step = stepping(trained, loss_fn, optimizer)
    if args.compile:
        step = torch.compile(step)
    for epoch in range(first_epoch, args.epochs):
        print(f"Epoch {epoch + 1}\n-------------------------------")
        figures = train(train_dataloader, trained, step, device, processes, args.no_progress or rank > 0)
        if rank:
            continue  # only the first process tests and saves
        figures = [*figures, *test(test_dataloader, model, loss_fn, device)]
        for name, figure in zip(FIGURES, figures, strict=True):
            history.setdefault(name, []).append(figure)
        state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state["history"] = history
        with or_exit(f"cannot save to {checkpoint_file!r}"):
            torch.save(state, checkpoint_file)
    print("Done!")
    if dist.is_initialized():
        dist.destroy_process_group()
    if rank:
        return

    with or_exit(f"cannot save to {args.save!r}"):
        torch.save(model.state_dict(), args.save)
    print(f"Saved model state to {args.save}")

    model = NeuralNetwork().to(device)
    model.load_state_dict(torch.load(args.save))
    predict(test_data, model, device)
    if args.plot:
        plot(args.plot, test_data, model, device, history)
    if notice:
        print(notice)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        # (tqdm does not erase a bar that it was drawing for the first time.)
        erase = f"\r{' ' * (shutil.get_terminal_size().columns - 1)}\r" if sys.stderr.isatty() else "\n"
        print(f"{erase}Interrupted. Saved files stay; --resume continues from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
