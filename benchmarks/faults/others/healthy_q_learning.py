"""Deep Q-learning in a corridor, with replay memory and a target network."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
CELLS, GAMMA = 9, 0.9


def step(cell, action):
    cell = max(0, min(CELLS - 1, cell + (1 if action else -1)))
    done = cell == CELLS - 1
    return cell, (1.0 if done else -0.01), done


def one_hot(cells):
    return torch.eye(CELLS)[cells]


q_net = nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-3)
memory = deque(maxlen=2000)
updates = 0

for episode in range(60):
    cell, done, epsilon = 0, False, max(0.1, 1 - episode / 30)
    for _ in range(40):
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q_net(one_hot([cell])).argmax().item()
        new, reward, done = step(cell, action)
        memory.append((cell, action, reward, new, float(done)))
        cell = new
        if len(memory) >= 64:
            s, a, r, s2, d = zip(*random.sample(memory, 32))
            with torch.no_grad():
                goal = torch.tensor(r) + GAMMA * (1 - torch.tensor(d)) * target(one_hot(list(s2))).max(1).values
            value = q_net(one_hot(list(s))).gather(1, torch.tensor(a)[:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            updates += 1
            if updates % 50 == 0:
                target.load_state_dict(q_net.state_dict())
        if done:
            break
    if episode % 10 == 9:
        print(f"episode {episode + 1}: {updates} updates, loss {loss.item():.5f}")

with torch.no_grad():
    best = q_net(one_hot(list(range(CELLS - 1)))).argmax(1)
print(f"final share of cells with the right move {best.float().mean().item():.3f}")
