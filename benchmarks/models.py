"""Training steps of various models, with tinytorch or PyTorch, from the same source code.

Each function creates a model and its data, equal for both libraries, and returns a function that takes a training step
and returns the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Step = Callable[[], Any]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load(name: str, library: str) -> ModuleType:
    """Return an example as a module that imports `library`, such as "torch", in place of tinytorch."""
    script = EXAMPLES / f"{name}.py"
    module = ModuleType(name)
    module.__file__ = str(script)
    source = script.read_text(encoding="utf-8").replace("tinytorch", library)
    exec(compile(source, str(script), "exec"), module.__dict__)
    return module


def data(torch: Any, *shape: int, classes: int = 10) -> tuple[Any, Any]:
    """Return random inputs of a shape and random classes, equal for both libraries."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.random(shape, dtype=np.float32))
    return X, torch.from_numpy(rng.integers(0, classes, shape[0]))


def stepping(optimizer: Any, loss_of: Callable[[], Any]) -> Step:
    """Return a function that takes an optimizer step for a loss."""

    def step() -> Any:
        loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def step_of(torch: Any, model: Any, X: Any, y: Any, name: str = "Adam") -> Step:
    """Return a function that takes a training step of a classifier."""
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
    loss_fn = torch.nn.CrossEntropyLoss()
    return stepping(optimizer, lambda: loss_fn(model(X), y))


def alone(model: Any) -> Any:
    """Return the model unchanged, for a single process."""
    return model


def micro_mlp(torch: Any) -> Step:
    """An MLP 2-16-16-1 on a hundred points, whose time is all overhead."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    X = data(torch, 100, 2)[0]
    y = X.prod(1, keepdim=True)
    return stepping(torch.optim.SGD(model.parameters(), lr=0.1), lambda: ((model(X) - y) ** 2).mean())


def pinn(torch: Any, points: int = 256, width: int = 64, depth: int = 2) -> Step:
    """`examples/pinn.py`: second derivatives of a small network."""
    example = load("pinn", torch.__name__)
    settings = example.parse(["--no-plot", "--points", str(points)])
    torch.manual_seed(0)
    model = example.Network(width, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    return lambda: example.improve(model, optimizer, points, settings.given)


def mlp(torch: Any, batch: int = 256, name: str = "Adam", wrap: Callable[[Any], Any] = alone) -> Step:
    """The quickstart's model."""
    nn = torch.nn
    torch.manual_seed(0)
    layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    return step_of(torch, wrap(nn.Sequential(nn.Flatten(), *layers)), *data(torch, batch, 1, 28, 28), name)


def cnn(torch: Any, batch: int = 64, wrap: Callable[[Any], Any] = alone) -> Step:
    """Two convolutions, of 32 and 64 channels, and two linear layers, on images of 28 x 28."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    return step_of(torch, wrap(model), *data(torch, batch, 1, 28, 28))


def gpt(torch: Any, batch: int = 12, context: int = 64, wrap: Callable[[Any], Any] = alone) -> Step:
    """The model of `examples/char_gpt.py`: 4 layers, 128 wide, and AdamW."""
    example = load("char_gpt", torch.__name__)
    torch.manual_seed(0)
    model = wrap(example.GPT(size=65, context=context, layers=4, heads=4, width=128))
    optimizer = example.optimizer_of(model, lr=1e-3)
    text = torch.from_numpy(np.random.default_rng(0).integers(0, 65, (batch, context + 1)))
    return lambda: example.improve(model, optimizer, text[:, :-1], text[:, 1:])


def lstm(torch: Any, batch: int = 64, hidden: int = 128) -> Step:
    """The model of `examples/lstm_rows.py`: an LSTM over the 28 rows of an image."""
    torch.manual_seed(0)
    model = load("lstm_rows", torch.__name__).Network(hidden, layers=1)
    return step_of(torch, model, *data(torch, batch, 1, 28, 28))


def _residual(torch: Any, inputs: int, outputs: int, stride: int) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            self.short = nn.Identity()
            if stride != 1:
                self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            return torch.relu(self.inner(x) + self.short(x))

    return Block()


def resnet_of(torch: Any) -> Any:
    """Return a residual network for images of 3 x 32 x 32: four blocks, of 16 and 32 channels."""
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(_residual(torch, *sizes) for sizes in ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1))),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def resnet(torch: Any) -> Step:
    """A residual network with batch normalization, on 3 x 32 x 32."""
    return step_of(torch, resnet_of(torch), *data(torch, 32, 3, 32, 32))


def mobilenet(torch: Any) -> Step:
    """Inverted residuals: depthwise convolutions and hardswish, on 3 x 32 x 32."""
    nn = torch.nn
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            wide = 4 * inputs
            self.inner = nn.Sequential(
                nn.Conv2d(inputs, wide, 1, bias=False),
                nn.BatchNorm2d(wide),
                nn.Hardswish(),
                nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
                nn.BatchNorm2d(wide),
                nn.Hardswish(),
                nn.Conv2d(wide, outputs, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            self.add = inputs == outputs and stride == 1

        def forward(self, x: Any) -> Any:
            return x + self.inner(x) if self.add else self.inner(x)

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.Hardswish(),
        *(Block(*sizes) for sizes in ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1))),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(40, 10),
    )
    return step_of(torch, model, *data(torch, 32, 3, 32, 32))


def unet(torch: Any) -> Step:
    """A diffusion model, which predicts noise: group norm, SiLU, transposed convolutions, on 1 x 32 x 32."""
    nn = torch.nn
    torch.manual_seed(0)

    def block(inputs: int, outputs: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
        )  # fmt: skip

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(1, 64), nn.SiLU(), nn.Linear(64, 64))
            self.down, self.bottom, self.last = block(1, 32), block(32, 64), block(64, 32)
            self.up = nn.ConvTranspose2d(64, 32, 2, 2)
            self.out = nn.Conv2d(32, 1, 1)

        def forward(self, x: Any, t: Any) -> Any:
            first = self.down(x)
            low = self.bottom(nn.functional.max_pool2d(first, 2)) + self.time(t)[:, :, None, None]
            return self.out(self.last(torch.cat([self.up(low), first], 1)))

    model = UNet()
    X = data(torch, 16, 1, 32, 32)[0]

    def loss() -> Any:
        t, noise = torch.rand(len(X), 1), torch.randn(X.shape)
        part = t[:, :, None, None]
        return nn.functional.mse_loss(model((1 - part) * X + part * noise, t), noise)

    return stepping(torch.optim.AdamW(model.parameters(), lr=1e-3), loss)


def dcgan(torch: Any) -> Step:
    """A step of both networks of a DCGAN, on 1 x 32 x 32."""
    nn = torch.nn
    torch.manual_seed(0)
    G = nn.Sequential(
        nn.ConvTranspose2d(64, 64, 4, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    D = nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 4), nn.Flatten(0),
    )  # fmt: skip
    optim_G, optim_D = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (G, D))
    loss_fn = nn.BCEWithLogitsLoss()
    X = data(torch, 32, 1, 32, 32)[0] * 2 - 1
    real, fake = torch.ones(len(X)), torch.zeros(len(X))

    def step() -> Any:
        generated = G(torch.randn(len(X), 64, 1, 1))
        optim_D.zero_grad()
        loss_D = loss_fn(D(X), real) + loss_fn(D(generated.detach()), fake)
        loss_D.backward()
        optim_D.step()
        optim_G.zero_grad()
        loss_fn(D(generated), real).backward()
        optim_G.step()
        return loss_D.detach()

    return step


def vae(torch: Any) -> Step:
    """A variational autoencoder, 784-256-16-256-784, with BCE of logits."""
    nn = torch.nn
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
    decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))
    X = data(torch, 128, 784)[0]

    def loss() -> Any:
        mean, log_var = encoder(X).chunk(2, 1)
        z = mean + torch.randn(mean.shape) * torch.exp(0.5 * log_var)
        error = nn.functional.binary_cross_entropy_with_logits(decoder(z), X, reduction="sum")
        return (error - 0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()) / len(X)

    return stepping(torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3), loss)


def transformer(torch: Any) -> Step:
    """A text classifier of `nn.TransformerEncoder` layers with dropout and GELU: 2 layers, 64 wide, 32 x 48."""
    nn = torch.nn
    torch.manual_seed(0)

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(1000, 64), nn.Parameter(torch.randn(48, 64) * 0.02)
            layer = nn.TransformerEncoderLayer(64, 4, 256, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.layers(self.words(x) + self.positions).mean(1))

    X = torch.from_numpy(np.random.default_rng(1).integers(0, 1000, (32, 48)))
    return step_of(torch, Classifier(), X, data(torch, 32)[1], "AdamW")


def gru(torch: Any) -> Step:
    """A classifier of texts of different lengths: embedding and packed bidirectional GRU."""
    nn = torch.nn
    torch.manual_seed(0)

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(5000, 64, padding_idx=0)
            self.gru = nn.GRU(64, 64, batch_first=True, bidirectional=True)
            self.out = nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            packed = nn.utils.rnn.pack_padded_sequence(self.words(x), lengths, batch_first=True, enforce_sorted=False)
            return self.out(torch.cat(tuple(self.gru(packed)[1]), 1))

    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.integers(1, 5000, (32, 40)))
    lengths = torch.from_numpy(rng.integers(10, 41, 32))
    return step_of(torch, Classifier(), X, data(torch, 32)[1])


def tcn(torch: Any) -> Step:
    """Dilated convolutions over time, with weight normalization: 8 channels of 256 steps."""
    nn = torch.nn
    torch.manual_seed(0)
    layers: list[Any] = []
    for i, width in enumerate((8, 32, 32, 32)):
        conv = nn.Conv1d(width, 32, 3, padding=2**i, dilation=2**i)
        layers += [nn.utils.parametrizations.weight_norm(conv), nn.ReLU(), nn.Dropout(0.1)]
    return step_of(
        torch,
        nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 10)),
        *data(torch, 32, 8, 256),
    )


def graph(torch: Any) -> Step:
    """A graph attention network on 2,000 nodes and 16,000 edges: gather, segment softmax, index_add."""
    nn = torch.nn
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    source, target = torch.from_numpy(rng.integers(0, 2000, (2, 16000)))

    class Layer(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.linear, self.score = nn.Linear(inputs, outputs), nn.Linear(2 * outputs, 1)

        def forward(self, x: Any) -> Any:
            x = self.linear(x)
            score = nn.functional.leaky_relu(self.score(torch.cat([x[source], x[target]], 1)), 0.2).exp()
            total = torch.zeros(len(x), 1).index_add(0, target, score)
            return torch.zeros_like(x).index_add(0, target, score / total[target] * x[source])

    model = nn.Sequential(Layer(64, 32), nn.ELU(), Layer(32, 10))
    return step_of(torch, model, *data(torch, 2000, 64))


def recommender(torch: Any) -> Step:
    """Embeddings of users, items and bags of words, and a small network that predicts clicks."""
    nn = torch.nn
    torch.manual_seed(0)
    users, items, words = nn.Embedding(2000, 32), nn.Embedding(5000, 32), nn.EmbeddingBag(3000, 32)
    top = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    rng = np.random.default_rng(1)
    u, i = (torch.from_numpy(rng.integers(0, n, 512)) for n in (2000, 5000))
    w = torch.from_numpy(rng.integers(0, 3000, (512, 8)))
    y = torch.from_numpy(rng.integers(0, 2, 512).astype(np.float32))
    parameters = [p for module in (users, items, words, top) for p in module.parameters()]
    return stepping(
        torch.optim.Adam(parameters, lr=1e-3),
        lambda: nn.functional.binary_cross_entropy_with_logits(top(torch.cat([users(u), items(i), words(w)], 1)), y),
    )


def actor_critic(torch: Any) -> Step:
    """Sample actions in a sequence of twenty random states, and learn from the episode."""
    nn = torch.nn
    torch.manual_seed(0)
    body, policy, value = nn.Sequential(nn.Linear(4, 64), nn.ReLU()), nn.Linear(64, 2), nn.Linear(64, 1)
    states, rewards = data(torch, 20, 4)[0], data(torch, 20)[0]
    parameters = [p for module in (body, policy, value) for p in module.parameters()]

    def loss() -> Any:
        total: Any = 0
        for state, reward in zip(states, rewards, strict=True):
            hidden = body(state)
            choice = torch.distributions.Categorical(logits=policy(hidden))
            action, estimate = choice.sample(), value(hidden)[0]
            total = total + nn.functional.smooth_l1_loss(estimate, reward)
            total = total - choice.log_prob(action) * (reward - estimate.detach())
        return total

    return stepping(torch.optim.RMSprop(parameters, lr=1e-3), loss)
