"""Q-learning with a replay buffer and a slow target network on a corridor of 8 cells."""
import random
from collections import deque
import torch
from torch import nn

CELLS, GAMMA = 8, 0.9


class Corridor:
    def reset(self):
        self.pos, self.t = random.randrange(CELLS - 1), 0
        return self.pos

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        self.t += 1
        done = self.pos == CELLS - 1
        return self.pos, float(done), done, done or self.t >= 30


def onehot(cells):
    return nn.functional.one_hot(torch.as_tensor(cells), CELLS).float()


def make_q():
    return nn.Sequential(nn.Linear(CELLS, 32), nn.ReLU(), nn.Linear(32, 2))


def learn(q, target, opt, memory):
    s, a, r, s2, d = zip(*random.sample(memory, 32))
    q_sa = q(onehot(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
    best_next = target(onehot(s2)).max(1).values.detach()  # no gradient into the target
    goal = torch.tensor(r) + GAMMA * best_next * (1 - torch.tensor(d).float())
    loss = nn.functional.smooth_l1_loss(q_sa, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    random.seed(5)
    torch.manual_seed(5)
    env, memory = Corridor(), deque(maxlen=2000)
    q, target = make_q(), make_q()
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=5e-3)
    lengths, losses = [], []
    for episode in range(80):
        s, over, eps = env.reset(), False, max(0.05, 1 - episode / 40)
        while not over:
            with torch.no_grad():
                a = random.randrange(2) if random.random() < eps else q(onehot([s])).argmax().item()
            s2, r, done, over = env.step(a)
            memory.append((s, a, r, s2, done))
            s = s2
            if len(memory) >= 64:
                losses.append(learn(q, target, opt, memory))
                with torch.no_grad():
                    for pt, p in zip(target.parameters(), q.parameters()):
                        pt.lerp_(p, 0.05)
        lengths.append(env.t)
        if episode % 10 == 9:
            print(f"episode {episode + 1} loss {sum(losses[-50:]) / 50:.6f} mean length {sum(lengths[-10:]) / 10:.1f}")
    print("values", [round(v, 2) for v in q(onehot(range(CELLS - 1))).max(1).values.tolist()])


main()
