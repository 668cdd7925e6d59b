"""Train a small GPT on the characters of a text, and generate some text.

    python examples/char_gpt.py
    python examples/char_gpt.py --text plays.txt --steps 5000 --length 1000
    python examples/char_gpt.py --quick
    python examples/char_gpt.py --help

The model is a transformer of 4 layers, 128 wide, with 800,000 parameters,
which predicts the next character from up to 64 characters. Without --text it
is trained on documents of this project, which it begins to memorize after some
hundred steps; a longer text gives a better model. A tenth of the text is held
out for testing. Ctrl-C ends the training; the model then generates text with
its current weights.

Sources: Radford et al., Language models are unsupervised multitask learners
(GPT-2), 2019; the sizes are those of Karpathy's nanoGPT for a CPU.
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
    """A layer of the transformer: causal self-attention, then an MLP."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        for layer in (self.project, self.contract):  # residual branches: 2 per layer are added up
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    def attention(self, x):
        """Return the causal self-attention of `x`, (B, T, C)."""
        B, T, C = x.shape
        q, k, v = (
            x.view(B, T, self.heads, C // self.heads).transpose(1, 2)  # (B, heads, T, C / heads)
            for x in self.query_key_value(x).split(C, dim=2)
        )
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(out.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        """Return the output of the layer, (B, T, C), for `x`, (B, T, C)."""
        x = x + self.attention(self.norm1(x))
        return x + self.contract(F.gelu(self.expand(self.norm2(x))))


class GPT(nn.Module):
    """A model that maps characters, (B, T), to scores of the next character at each position, (B, T, size)."""

    def __init__(self, size, context, layers, heads, width):
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(size, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, layers) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        self.head.weight = self.characters.weight  # the input and the output embedding are tied
        nn.init.normal_(self.characters.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, x):
        """Return the scores."""
        position = torch.arange(x.shape[1])
        return self.head(self.norm(self.blocks(self.characters(x) + self.positions(position))))


def loss_of(model, x, y):
    """Return the mean cross entropy of the next characters `y`, (B, T), for the input `x`, (B, T)."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def batch_of(text, batch, context):
    """Return random pieces of the text, (batch, context), and the next character at each position."""
    start = torch.randint(len(text) - context, (batch, 1))
    index = start + torch.arange(context)
    return text[index], text[index + 1]


def optimizer_of(model, lr):
    """Return AdamW with weight decay for matrices only."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))


def improve(model, optimizer, x, y):
    """Take one training step and return the loss, a tensor."""
    loss = loss_of(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def train(model, text, test_text, args):
    """Train the model until the last step or Ctrl-C, and return the number of steps."""
    optimizer = optimizer_of(model, args.lr)
    warm_up = min(100, args.steps // 10 + 1)

    def rate(step):  # linear warm-up, then cosine decay to a tenth
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
    """Return the loss on the test text: on consecutive pieces, at most 100."""
    starts = torch.arange(0, len(text) - args.context, args.context)[:100]
    index = starts[:, None] + torch.arange(args.context)
    return loss_of(model, text[index], text[index + 1]).item()


@torch.no_grad()
def write(model, start, length, temperature):
    """Return the numbers of `length` generated characters that continue `start`, a tensor (1, T)."""
    x = start
    for _ in range(length):
        scores = model(x[:, -model.context :])[:, -1]
        x = torch.cat([x, torch.multinomial(F.softmax(scores / temperature, dim=-1), 1)], dim=1)
    return x[0, start.shape[1] :]


def read(args):
    """Return the training text."""
    if args.text:
        return Path(args.text).read_text(encoding="utf-8")
    root = Path(__file__).resolve().parent.parent
    return "\n".join((root / page).read_text(encoding="utf-8") for page in PAGES)


def parse(argv):
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--text", metavar="FILE", help="the training text, in UTF-8 (documents of this project)")
    option("--steps", type=int, default=1000, help="training steps (1000)")
    option("--batch-size", type=int, default=12, help="pieces of text per step (12)")
    option("--context", type=int, default=64, help="characters per piece (64)")
    option("--layers", type=int, default=4, help="the number of layers (4)")
    option("--heads", type=int, default=4, help="the number of attention heads (4)")
    option("--width", type=int, default=128, help="the width of the layers (128)")
    option("--lr", type=float, default=2e-3, help="the highest learning rate (0.002)")
    option("--length", type=int, default=300, help="the number of characters to generate (300)")
    option("--temperature", type=float, default=0.8, help="the temperature of the sampling (0.8)")
    option("--seed", type=int, default=0, help="the seed of the weights, the batches and the sampling (0)")
    option("--log-every", type=int, default=250, metavar="STEPS", help="steps between printed losses (250)")
    option("--compile", action="store_true", help="compile the training step (torch.compile)")
    option("--quick", action="store_true", help="20 steps of a small model, as a short test")
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
    """Run the command line."""
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
