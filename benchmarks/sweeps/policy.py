"""REINFORCE on a pole that is balanced: episodes end at different steps."""

import math

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    def reset(self):
        self.state = [float(x) for x in torch.rand(4) * 0.1 - 0.05]
        return self.state

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action else -10.0
        total = (force + 0.05 * turn * turn * math.sin(angle)) / 1.1
        pull = (9.8 * math.sin(angle) - math.cos(angle) * total) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        push = total - 0.05 * pull * math.cos(angle) / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * pull]
        return self.state, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
pole = Pole()
for episode in range(40):
    state, done, log_probs = pole.reset(), False, []
    while not done and len(log_probs) < 100:
        choice = Categorical(logits=policy(torch.tensor(state)))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, done = pole.step(action.item())
    returns = torch.arange(len(log_probs), 0, -1, dtype=torch.float32)
    returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
    loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
