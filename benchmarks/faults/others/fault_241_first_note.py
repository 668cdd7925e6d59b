# cause: gradients-vanish
# symptom: the loss stays at guessing since the first note is forgotten (accuracy 0.305; without the fault: accuracy 1.000)
import torch
import torch.nn as nn

torch.manual_seed(88)


# A tune of 30 notes; the task is to name the note it began with.
def tunes(n, length=30, notes=4):
    first = torch.randint(0, notes, (n,))
    x = torch.zeros(n, length, notes + 2)
    x[torch.arange(n), 0, first] = 1.0
    x[:, 1:, notes:] = 0.3 * torch.randn(n, length - 1, 2)
    return x, first


class Listener(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.RNN(6, hidden, batch_first=True)
        self.reset()
        self.name = nn.Linear(hidden, 4)

    def reset(self):
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.2)
        nn.init.normal_(self.rnn.weight_hh_l0, std=0.02)  # <- fault
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        _, last = self.rnn(x)  # <- fault
        return self.name(last[0])


def accuracy(net, n=800):
    x, y = tunes(n)
    with torch.no_grad():
        return (net(x).argmax(dim=1) == y).float().mean().item()


net = Listener()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for i in range(301):
    x, y = tunes(64)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if i % 60 == 0:
        print(f"{i:4d} loss {loss.item():.4f} accuracy {accuracy(net):.3f}")

print(f"final accuracy {accuracy(net):.3f}")
