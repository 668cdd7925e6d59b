# cause: graph-cut
# symptom: the encoder's weights have no gradient; only the read-out learns and the error stays high
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)

    def forward(self, series):
        _, (h, _) = self.rnn(series.unsqueeze(-1))
        return h[-1]


class ReadOut(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lin = nn.Linear(hidden, 1)

    def forward(self, code):
        return self.lin(code).squeeze(-1)


def make_series(n, steps=12):
    x = torch.randn(n, steps)
    early = x[:, : steps // 2].mean(1)
    late = x[:, steps // 2:].mean(1)
    return x, 2.0 * late - 2.0 * early + x[:, -1] * x[:, -2]


class Learner:
    def __init__(self, lr):
        self.encoder, self.readout = Encoder(16), ReadOut(16)
        both = list(self.encoder.parameters()) + list(self.readout.parameters())
        self.opt = torch.optim.Adam(both, lr=lr)

    def predict(self, x):
        code = self.encoder(x)
        code = torch.stack([c.data for c in code])  # <- fault
        code = (code - code.mean(0)) / (code.std(0) + 1e-5)
        return self.readout(code)

    def update(self, x, y):
        loss = nn.functional.mse_loss(self.predict(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(42)
    x, y = make_series(1500)
    learner = Learner(lr=0.01)
    for epoch in range(16):
        losses = [learner.update(x[i], y[i]) for i in torch.randperm(1500).split(50)]
        if epoch % 3 == 0:
            print(f"epoch {epoch} mse {sum(losses) / len(losses):.4f} (variance of y {y.var().item():.3f})")
    print({k: p.grad is not None for k, p in learner.encoder.named_parameters()})
