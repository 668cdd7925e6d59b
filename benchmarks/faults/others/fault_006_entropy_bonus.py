# cause: log-of-zero
# symptom: the loss is NaN when an action's probability is 0 (ValueError: Expected parameter probs (Tensor of shape (24, 3)) of distribution Cat; without the fault: mean reward -0.154)
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(543)


class ChaseEnv:
    """24 games at once: the player goes left, stays or goes right, to be near a goal that drifts."""

    def reset(self):
        self.x = 2 * torch.rand(24) - 1
        self.goal = 2 * torch.rand(24) - 1
        return torch.stack([self.x, self.goal], dim=1)

    def step(self, action):
        self.x = (self.x + 0.2 * (action - 1)).clamp(-1, 1)
        self.goal = (self.goal + 0.05 * torch.randn(24)).clamp(-1, 1)
        reward = -(self.x - self.goal).abs()
        return torch.stack([self.x, self.goal], dim=1), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 32)
        self.affine2 = nn.Linear(32, 3)

    def forward(self, x):
        scores = self.affine2(torch.relu(self.affine1(4 * x)))
        blocked = torch.stack([x[:, 0] <= -1, torch.zeros(len(x), dtype=torch.bool), x[:, 0] >= 1], dim=1)
        return torch.softmax(scores.masked_fill(blocked, -1e9), dim=-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env = ChaseEnv()


def run_episode(steps=15):
    log_probs, rewards, entropies = [], [], []
    state = env.reset()
    for _ in range(steps):
        m = Categorical(policy(state))
        action = m.sample()
        log_probs.append(m.log_prob(action))
        entropy = -(m.probs * torch.log(m.probs)).sum(1).mean()  # <- fault
        entropies.append(entropy)
        state, reward = env.step(action)
        rewards.append(reward)
    return log_probs, rewards, entropies


def finish_episode(log_probs, rewards, entropies, gamma=0.9):
    R, returns = torch.zeros(24), []
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.stack(returns)
    returns = (returns - returns.mean(1, keepdim=True)) / (returns.std(1, keepdim=True) + 1e-6)
    policy_loss = -(torch.stack(log_probs) * returns).mean() - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()


history = []
for episode in range(1, 101):
    log_probs, rewards, entropies = run_episode()
    finish_episode(log_probs, rewards, entropies)
    history.append(torch.stack(rewards).mean().item())
    if episode % 20 == 0:
        print(f"episode {episode}\tmean reward of the last 20: {sum(history[-20:]) / 20:.3f}")
print(f"final mean reward {sum(history[-20:]) / 20:.3f}")
