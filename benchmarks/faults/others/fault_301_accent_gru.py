# cause: relu-on-logits
# symptom: loss stays high and accuracy stays well below what the data allow, because no logit can be negative and some classes get no gradient
"""Classify short pitch contours into 6 tones with a GRU."""
import torch
from torch import nn

N_TONES, STEPS = 6, 16


def contours(n):
    t = torch.linspace(0, 1, STEPS)
    bank = torch.stack([torch.zeros_like(t), t, -t, 4 * t * (1 - t), -4 * t * (1 - t), torch.sin(6.28 * t)])
    tone = torch.randint(0, N_TONES, (n,))
    speaker = 0.4 * torch.randn(n, 1)
    pitch = bank[tone] * (0.8 + 0.4 * torch.rand(n, 1)) + speaker + 0.15 * torch.randn(n, STEPS)
    return pitch.unsqueeze(-1), tone


class ToneNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.head = nn.Sequential(
            nn.Linear(2 * hidden, 32),
            nn.ReLU(),
            nn.Linear(32, N_TONES),
            nn.ReLU(),  # <- fault
        )

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(self.norm(states.mean(dim=1)))


def main(seed=8, epochs=8, bs=40):
    torch.manual_seed(seed)
    xs, ys = contours(1000)
    xt, yt = contours(400)
    net = ToneNet()
    opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
    ce = nn.CrossEntropyLoss()
    for e in range(1, epochs + 1):
        net.train()
        losses = []
        for idx in torch.randperm(len(xs)).split(bs):
            logits = net(xs[idx])
            loss = ce(logits, ys[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(float(loss))
        net.eval()
        with torch.no_grad():
            hit = (net(xt).argmax(-1) == yt).float().mean()
        print("epoch %2d | loss %.4f | test acc %.3f" % (e, sum(losses) / len(losses), hit))


if __name__ == "__main__":
    main()
