"""Train a small GPT on the characters of a text, and let it write some.

    python examples/char_gpt.py
    python examples/char_gpt.py --text shakespeare.txt --steps 5000 --length 1000
    python examples/char_gpt.py --quick
    python examples/char_gpt.py --help

A transformer of 4 layers, 128 wide, that sees up to 64 characters and guesses the next one; 800,000
parameters. Without --text it reads the pages on autograd and on the architecture of the project that
it comes from, which it begins to know by heart after some hundred steps: more text makes a better
writer. A tenth of the text is held back to test it with. Ctrl-C ends the training, and the model
writes with what it has learned.

Sources: Radford et al., Language models are unsupervised multitask learners (GPT-2), 2019; the sizes
are those of Karpathy's nanoGPT for a CPU.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

PAGES = ("docs/autograd.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")


class Block(nn.Module):
    """A layer of the transformer: attention to what came before, then a small network."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        for layer in (self.project, self.contract):  # as many are added up as there are layers
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    def attention(self, x):
        """Return what each place takes from those up to it; `x` is (B, T, C)."""
        B, T, C = x.shape
        q, k, v = (
            each.view(B, T, self.heads, C // self.heads).transpose(1, 2)  # (B, heads, T, C / heads)
            for each in self.query_key_value(x).split(C, dim=2)
        )
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(out.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        """Return `x`, (B, T, C), with what this layer adds."""
        x = x + self.attention(self.norm1(x))
        return x + self.contract(F.gelu(self.expand(self.norm2(x))))


class GPT(nn.Module):
    """Numbers of characters in, (B, T), scores for the next one at each place out, (B, T, size)."""

    def __init__(self, size, context, layers, heads, width):
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(size, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, layers) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        self.head.weight = self.characters.weight  # one table for reading and for writing
        nn.init.normal_(self.characters.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)

    def forward(self, x):
        """Return the scores."""
        place = torch.arange(x.shape[1])
        return self.head(self.norm(self.blocks(self.characters(x) + self.places(place))))


def loss_of(model, x, y):
    """Return the mean cross entropy of the next characters `y`, (B, T), given `x`."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def batch_of(text, batch, context):
    """Return pieces of the text, (batch, context), from random places, and what follows each character."""
    start = torch.randint(len(text) - context, (batch, 1))
    at = start + torch.arange(context)
    return text[at], text[at + 1]


def optimizer_of(model, lr):
    """Return AdamW, with decay of the matrices only."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


def improve(model, optimizer, x, y):
    """Take one step of training and return the loss, a tensor."""
    loss = loss_of(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def train(model, text, test_text, args):
    """Train the model, to the last step or to Ctrl-C, and return the number of steps."""
    optimizer = optimizer_of(model, args.lr)
    warm_up = min(100, args.steps // 10 + 1)

    def rate(step):  # up along a line, then down along a cosine, to a tenth
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.55 + 0.45 * math.cos(math.pi * (step - warm_up) / max(1, args.steps - warm_up))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    take_step = torch.compile(improve) if args.compile else improve
    start = time.perf_counter()
    step = 0
    try:
        for step in range(1, args.steps + 1):
            loss = take_step(model, optimizer, *batch_of(text, args.batch_size, args.context))
            scheduler.step()
            if step % args.log_every == 0 or step in (1, args.steps):
                seconds = time.perf_counter() - start
                print(
                    f"step {step:>5d}  loss {loss.item():.4f}"
                    f"  test loss {test(model, test_text, args):.4f}  {seconds:>6.1f} s",
                    flush=True,
                )
    except KeyboardInterrupt:
        print(f"\nInterrupted after {step - 1} steps")
        step -= 1
    return step


@torch.no_grad()
def test(model, text, args):
    """Return the loss on the text that was held back: a piece after another, up to 100 of them."""
    starts = torch.arange(0, len(text) - args.context, args.context)[:100]
    at = starts[:, None] + torch.arange(args.context)
    return loss_of(model, text[at], text[at + 1]).item()


@torch.no_grad()
def write(model, start, length, temperature):
    """Return the numbers of `length` characters that go on from those of `start`, a tensor (1, T)."""
    x = start
    for _ in range(length):
        scores = model(x[:, -model.context :])[:, -1]
        x = torch.cat([x, torch.multinomial(F.softmax(scores / temperature, dim=-1), 1)], dim=1)
    return x[0, start.shape[1] :]


def read(args):
    """Return the text to learn."""
    if args.text:
        return Path(args.text).read_text(encoding="utf-8")
    root = Path(__file__).resolve().parent.parent
    return "\n".join((root / page).read_text(encoding="utf-8") for page in PAGES)


def parse(argv):
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--text", metavar="FILE", help="what to learn, in UTF-8 (the project's own pages)")
    option("--steps", type=int, default=1000, help="of the training (1000)")
    option("--batch-size", type=int, default=12, help="pieces of text per step (12)")
    option("--context", type=int, default=64, help="characters of a piece (64)")
    option("--layers", type=int, default=4, help="of the transformer (4)")
    option("--heads", type=int, default=4, help="of its attention (4)")
    option("--width", type=int, default=128, help="of its layers (128)")
    option("--lr", type=float, default=2e-3, help="learning rate at its highest (0.002)")
    option("--length", type=int, default=300, help="characters to write in the end (300)")
    option("--temperature", type=float, default=0.8, help="the higher, the bolder (0.8)")
    option("--seed", type=int, default=0, help="of the weights, the pieces and the sample (0)")
    option("--log-every", type=int, default=250, metavar="STEPS", help="print losses (250)")
    option("--compile", action="store_true", help="run a step as one program (torch.compile)")
    option("--quick", action="store_true", help="20 steps of a small model, to see it run")
    args = parser.parse_args(argv)
    if args.quick:
        args.steps, args.layers, args.width, args.context = 20, 2, 32, 32
        args.length, args.log_every = 50, 5
    for name in ("steps", "batch_size", "context", "layers", "heads", "width", "lr", "length"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    for name in ("temperature", "log_every"):
        if not 0 < getattr(args, name) < math.inf:
            parser.error(f"argument --{name.replace('_', '-')}: should be above 0 and finite")
    if args.width % args.heads:
        parser.error("argument --width: should be a multiple of --heads")
    return args


def main(argv=None):
    """Do what the command line asks for."""
    args = parse(argv)
    try:
        text = read(args)
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"char_gpt.py: cannot read the text: {error}")
    if len(text) < 20 * (args.context + 1):
        sys.exit(f"char_gpt.py: the text should have {20 * (args.context + 1)} characters or more")
    characters = sorted(set(text))
    number = {character: i for i, character in enumerate(characters)}
    data = torch.tensor([number[character] for character in text])
    split = len(data) * 9 // 10

    torch.manual_seed(args.seed)
    model = GPT(len(characters), args.context, args.layers, args.heads, args.width)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(text):,} characters, {len(characters)} different ones; {count:,} parameters")
    steps = train(model, data[:split], data[split:], args)
    written = write(model, data[None, :1], args.length, args.temperature)
    print("-" * 32)
    print("".join(characters[i] for i in written.tolist()))
    if steps < args.steps:
        sys.exit(130)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
