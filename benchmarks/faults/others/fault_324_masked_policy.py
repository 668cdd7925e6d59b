# cause: log-of-zero
# symptom: the loss is nan from the first update on and the policy cannot be sampled afterwards
"""REINFORCE on a 4x4 grid: walk from a random cell to the corner; moves into walls are masked."""
import torch
from torch import nn

SIZE = 4
GOAL = (SIZE - 1, SIZE - 1)
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def legal(cell):
    return torch.tensor([float(0 <= cell[0] + dy < SIZE and 0 <= cell[1] + dx < SIZE) for dy, dx in MOVES])


def observe(cell):
    obs = torch.zeros(SIZE * SIZE)
    obs[cell[0] * SIZE + cell[1]] = 1.0
    return obs


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SIZE * SIZE, 32), nn.Tanh(), nn.Linear(32, len(MOVES)))

    def forward(self, obs, mask):
        weights = torch.softmax(self.body(obs), dim=-1) * mask
        return weights / weights.sum(-1, keepdim=True)


def play(policy, max_len=15):
    cell = divmod(int(torch.randint(0, SIZE * SIZE - 1, (1,))), SIZE)
    steps = []
    while cell != GOAL and len(steps) < max_len:
        obs, mask = observe(cell), legal(cell)
        with torch.no_grad():
            action = torch.multinomial(policy(obs, mask), 1).item()
        steps.append((obs, mask, action))
        cell = (cell[0] + MOVES[action][0], cell[1] + MOVES[action][1])
    return steps


torch.manual_seed(2)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
for update in range(60):
    episodes = [play(policy) for _ in range(12)]
    obs = torch.stack([s[0] for ep in episodes for s in ep])
    mask = torch.stack([s[1] for ep in episodes for s in ep])
    act = torch.tensor([s[2] for ep in episodes for s in ep])
    togo = torch.tensor([-float(len(ep) - i) for ep in episodes for i in range(len(ep))])
    adv = (togo - togo.mean()) / (togo.std() + 1e-6)
    probs = policy(obs, mask)
    logp = torch.log(probs)  # <- fault
    entropy = -(probs * logp).sum(-1).mean()  # <- fault
    loss = -(adv * logp.gather(1, act[:, None]).squeeze(1)).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 6 == 0:
        print(f"update {update:3d} loss {loss.item():.4f} mean length {len(act) / len(episodes):.2f}")
