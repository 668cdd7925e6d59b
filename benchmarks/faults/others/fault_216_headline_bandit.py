# cause: loss-sign
# symptom: the policy comes to choose what readers like least (click rate 0.051; without the fault: click rate 0.937)
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(50)

READER, HEADLINES = 8, 6
taste = torch.randn(READER, HEADLINES)


def clicked(readers, choice):
    score = (readers @ taste).gather(1, choice[:, None]).squeeze(1)
    return torch.bernoulli(torch.sigmoid(1.5 * score))


class Agent:
    def __init__(self, lr=0.01):
        self.policy = nn.Sequential(nn.Linear(READER, 32), nn.Tanh(), nn.Linear(32, HEADLINES))
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=lr)
        self.baseline = 0.5

    def act(self, readers):
        dist = Categorical(logits=self.policy(readers))
        choice = dist.sample()
        return choice, dist.log_prob(choice)

    def learn(self, log_prob, reward):
        advantage = reward - self.baseline
        objective = (log_prob * advantage).mean()  # <- fault
        self.opt.zero_grad()
        objective.backward()
        self.opt.step()
        self.baseline = 0.95 * self.baseline + 0.05 * reward.mean().item()


agent = Agent()
for day in range(400):
    readers = torch.randn(100, READER)
    choice, log_prob = agent.act(readers)
    reward = clicked(readers, choice)
    agent.learn(log_prob, reward)
    if day % 80 == 0:
        print(f"day {day}: click rate {reward.mean().item():.3f}")

readers = torch.randn(3000, READER)
with torch.no_grad():
    choice, _ = agent.act(readers)
print(f"final click rate {clicked(readers, choice).mean().item():.3f}")
