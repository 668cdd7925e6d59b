# cause: loss-sign
# symptom: the mean return falls from batch to batch; the walker learns to run away from the goal
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """Many walkers at once, cells 0..8, start at 4; +1 at the right end, -1 at the left end."""

    def __init__(self, walkers):
        self.walkers = walkers

    def reset(self):
        self.cell = torch.full((self.walkers,), 4)
        self.done = torch.zeros(self.walkers, dtype=torch.bool)
        return nn.functional.one_hot(self.cell, 9).float()

    def step(self, action):
        move = torch.where(self.done, torch.zeros_like(action), 2 * action - 1)
        self.cell = (self.cell + move).clamp(0, 8)
        reward = (self.cell == 8).float() - (self.cell == 0).float()
        reward = torch.where(self.done, torch.zeros_like(reward), reward - 0.02)
        self.done = self.done | (self.cell == 8) | (self.cell == 0)
        return nn.functional.one_hot(self.cell, 9).float(), reward


policy = None


def play(env, horizon=16, discount=0.97):
    obs, logps, rewards, alive = env.reset(), [], [], []
    for _ in range(horizon):
        alive.append((~env.done).float())
        dist = Categorical(logits=policy(obs))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        obs, r = env.step(a)
        rewards.append(r)
    returns, running = [], torch.zeros(env.walkers)
    for r in reversed(rewards):
        running = r + discount * running
        returns.insert(0, running)
    return torch.stack(logps), torch.stack(returns), torch.stack(alive)


torch.manual_seed(12)
env = Corridor(64)
policy = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for it in range(61):
    logp, ret, alive = play(env)
    advantage = (ret - ret[0].mean()) * alive
    loss = (logp * advantage).sum(0).mean()  # <- fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(f"iteration {it:3d}  mean return {ret[0].mean().item():+.3f}")
