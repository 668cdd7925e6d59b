# cause: relu-dead
# symptom: no hidden unit ever answers, so every picture gets the same scores (accuracy 0.122; without the fault: accuracy 1.000)
import torch
import torch.nn.functional as F

torch.manual_seed(16)

# Seven-segment digits with grey noise, brightness from 0 to 1.
SEGMENTS = torch.tensor([
    [1, 1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 0, 1, 1],
    [0, 1, 1, 1, 0, 1, 0], [1, 1, 0, 1, 0, 1, 1], [1, 1, 0, 1, 1, 1, 1], [1, 0, 1, 0, 0, 1, 0],
    [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1],
]).float()


def digits(n):
    y = torch.randint(10, (n,))
    x = SEGMENTS[y].repeat_interleave(5, dim=1)
    return (0.8 * x + 0.35 * torch.rand(n, 35)).clamp(0, 1), y


def make_layer(n_in, n_out):
    weight = (torch.rand(n_in, n_out) - 1.0) / n_in**0.5  # <- fault
    return weight.requires_grad_(), torch.zeros(n_out, requires_grad=True)


w1, b1 = make_layer(35, 64)  # <- fault
w2, b2 = make_layer(64, 10)


def forward(x):
    hidden = F.relu(x @ w1 + b1)  # <- fault
    return hidden @ w2 + b2, hidden


optimizer = torch.optim.SGD([w1, b1, w2, b2], lr=0.2, momentum=0.9)
for step in range(500):
    x, y = digits(64)
    scores, hidden = forward(x)
    loss = F.cross_entropy(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        active = (hidden > 0).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} share of active units {active:.2f}")

x, y = digits(1000)
with torch.no_grad():
    print(f"final accuracy {(forward(x)[0].argmax(1) == y).float().mean().item():.3f}")
