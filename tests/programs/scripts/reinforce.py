import random
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Walk right along a corridor; each step costs."""

    def __init__(self, length=5):
        self.length = length

    def reset(self):
        self.pos = random.randrange(2)
        return self.state()

    def state(self):
        s = [0.0] * self.length
        s[self.pos] = 1.0
        return s

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        done = self.pos == self.length - 1
        return self.state(), 1.0 if done else -0.1, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(5, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


torch.manual_seed(543)
random.seed(543)
env = Corridor()
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=3e-2)
eps = 1e-8
running_reward = 0
for i_episode in range(12):
    saved, rewards = [], []
    state = env.reset()
    for t in count():
        probs, value = policy(torch.tensor(state).float())
        m = Categorical(probs)
        action = m.sample()
        saved.append((m.log_prob(action), value, m.entropy()))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done or t > 40:
            break
    R, returns = 0, []
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value, entropy), R in zip(saved, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage - 0.01 * entropy)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    running_reward = 0.05 * sum(rewards) + 0.95 * running_reward
    print(
        f"Episode {i_episode}\tLength {len(rewards)}\tLoss {loss.item():.4f}\tAverage {running_reward:.3f}"
    )
print(m, m.probs, m.logits, m.sample((4,)).shape)
