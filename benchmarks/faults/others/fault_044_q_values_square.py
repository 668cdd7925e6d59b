# cause: broadcast-in-loss
# symptom: all states get the same value (share of starts that reach the goal 0.462; without the fault: share of starts that reach the goal 1.000)
import torch
import random
from collections import deque
import torch.nn as nn
import torch.nn.functional as F

random.seed(1)
torch.manual_seed(1)

SIZE = 4
GOAL = (3, 3)
HOLES = {(1, 1), (2, 3)}
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


def one_hot(pos):
    v = [0.0] * (SIZE * SIZE)
    v[pos[0] * SIZE + pos[1]] = 1.0
    return v


def env_step(pos, a):
    r, c = pos[0] + MOVES[a][0], pos[1] + MOVES[a][1]
    nxt = (min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1))
    if nxt == GOAL:
        return nxt, 1.0, True
    if nxt in HOLES:
        return nxt, -1.0, True
    return nxt, -0.02, False


def make_net():
    return nn.Sequential(nn.Linear(SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))


q_net, target_net = make_net(), make_net()
target_net.load_state_dict(q_net.state_dict())
target_net.eval()
optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)
memory = deque(maxlen=2000)
GAMMA, BATCH = 0.95, 64


def optimize():
    if len(memory) < BATCH:
        return None
    s, a, r, s2, done = zip(*random.sample(memory, BATCH))
    s, s2 = torch.tensor(s), torch.tensor(s2)
    a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done)
    q = q_net(s).gather(1, a.unsqueeze(1))  # <- fault
    with torch.no_grad():
        target = r + GAMMA * target_net(s2).max(1).values * (~done).float()
    loss = ((q - target) ** 2).mean()  # <- fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


epsilon, total_steps, loss = 1.0, 0, None
for episode in range(160):
    pos, done, t = (0, 0), False, 0
    while not done and t < 25:
        if random.random() < epsilon:
            a = random.randrange(4)
        else:
            with torch.no_grad():
                a = q_net(torch.tensor([one_hot(pos)])).argmax().item()
        nxt, reward, done = env_step(pos, a)
        memory.append((one_hot(pos), a, reward, one_hot(nxt), done))
        pos = nxt
        t += 1
        total_steps += 1
        loss = optimize()
        if total_steps % 60 == 0:
            target_net.load_state_dict(q_net.state_dict())
    epsilon = max(0.05, epsilon * 0.975)
    if episode % 40 == 39:
        print(f"episode {episode + 1} epsilon {epsilon:.2f} loss {loss:.4f}")

# greedy walks from every free cell
reached = 0
starts = [(r, c) for r in range(SIZE) for c in range(SIZE) if (r, c) != GOAL and (r, c) not in HOLES]
for pos in starts:
    for _ in range(12):
        with torch.no_grad():
            a = q_net(torch.tensor([one_hot(pos)])).argmax().item()
        pos, reward, done = env_step(pos, a)
        if done:
            reached += reward > 0
            break
print(f"final share of starts that reach the goal {reached / len(starts):.3f}")
