# Reinforcement learning on hand-written environments: PPO with GAE, and soft actor-critic.
import copy
import math
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal
from torch.distributions.transforms import TanhTransform
from torch.distributions import TransformedDistribution
from torch.utils.data import BatchSampler, SubsetRandomSampler

torch.manual_seed(0)


class Corridor:
    """Walk to the right end of a line; the wind pushes back."""

    def __init__(self, n=7):
        self.n = n

    def reset(self):
        self.pos, self.t = 0, 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.pos), self.n).float()

    def step(self, action):
        self.t += 1
        wind = torch.rand(()).item() < 0.1
        self.pos = min(max(self.pos + (1 if action == 1 else -1) - int(wind), 0), self.n - 1)
        done = self.pos == self.n - 1 or self.t >= 20
        return self.observe(), float(self.pos == self.n - 1) - 0.02, done, {}


def layer_init(layer, std=math.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(n_obs, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(n_obs, 16)), nn.Tanh(), layer_init(nn.Linear(16, n_act), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


print(Categorical(torch.tensor([0.2, 0.8])).probs, Categorical(torch.tensor([0.2, 0.8])).logits)
env, steps, gamma, lam, clip = Corridor(), 64, 0.99, 0.95, 0.2
agent = Agent(env.n, 2)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2, eps=1e-5)
obs, logprobs, values = torch.zeros(steps, env.n), torch.zeros(steps), torch.zeros(steps)
actions, rewards, dones = torch.zeros(steps), torch.zeros(steps), torch.zeros(steps)
next_obs, next_done = env.reset(), torch.zeros(())
returns_seen, running = deque(maxlen=20), 0.0
for update in range(5):
    optimizer.param_groups[0]["lr"] = (1.0 - update / 8) * 1e-2
    for t in range(steps):
        obs[t], dones[t] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[t] = value.flatten()
        actions[t], logprobs[t] = action, logprob
        next_obs, reward, done, _ = env.step(action.item())
        rewards[t] = torch.tensor(reward).view(-1)
        running += reward
        if done:
            returns_seen.append(running)
            running = 0.0
            next_obs = env.reset()
        next_done = torch.tensor(float(done))
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            nonterminal = 1.0 - (next_done if t == steps - 1 else dones[t + 1])
            nxt = next_value if t == steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * nxt * nonterminal - values[t]
            advantages[t] = last = delta + gamma * lam * nonterminal * last
        returns = advantages + values
    clipfracs = []
    for epoch in range(3):
        for idx in BatchSampler(SubsetRandomSampler(range(steps)), 16, drop_last=True):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs[idx], actions.long()[idx])
            logratio = newlogprob - logprobs[idx]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
                clipfracs += [((ratio - 1.0).abs() > clip).float().mean().item()]
            adv = advantages[idx]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - clip, 1 + clip)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - returns[idx]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    var_y = returns.var()
    print(f"{update} loss {loss.item():.4f} kl {approx_kl.item():.5f} ev {(1 - (returns - values).var() / var_y).item():.3f} return {sum(returns_seen) / len(returns_seen):.3f}")

Transition = namedtuple("Transition", ("state", "action", "reward", "next_state"))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.ReLU())
        self.mu, self.log_std = nn.Linear(24, 1), nn.Linear(24, 1)

    def dist(self, s):
        h = self.net(s)
        base = Normal(self.mu(h), self.log_std(h).clamp(-5, 2).exp())
        return TransformedDistribution(base, [TanhTransform(cache_size=1)])


actor, critics = Actor(), nn.ModuleList(nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1)) for _ in range(2))
targets = copy.deepcopy(critics).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
opt_a = torch.optim.Adam(actor.parameters(), 3e-3)
opt_c = torch.optim.Adam(critics.parameters(), 3e-3)
opt_alpha = torch.optim.Adam([log_alpha], 3e-3)
memory, state = [], torch.tensor([1.0, 0.0])
for step in range(60):
    with torch.no_grad():
        action = actor.dist(state).sample()
    vel = state[1] + 0.1 * action[0] - 0.02 * state[0]
    nxt = torch.stack((state[0] + 0.1 * vel, vel))
    memory.append(Transition(state, action, -nxt.square().sum(), nxt))
    state = nxt if step % 20 != 19 else torch.randn(2)
    if step < 15:
        continue
    batch = Transition(*zip(*[memory[i] for i in torch.randint(len(memory), (16,)).tolist()]))
    s, a, r, n = torch.stack(batch.state), torch.stack(batch.action), torch.stack(batch.reward).unsqueeze(1), torch.stack(batch.next_state)
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        d = actor.dist(n)
        na = d.rsample()
        q = torch.minimum(*[t(torch.cat([n, na], 1)) for t in targets])
        y = r + 0.98 * (q - alpha * d.log_prob(na))
    c_loss = sum(F.mse_loss(c(torch.cat([s, a], 1)), y) for c in critics)
    opt_c.zero_grad()
    c_loss.backward()
    opt_c.step()
    d = actor.dist(s)
    pa = d.rsample()
    logp = d.log_prob(pa)
    a_loss = (alpha * logp - torch.minimum(*[c(torch.cat([s, pa], 1)) for c in critics])).mean()
    opt_a.zero_grad()
    a_loss.backward()
    opt_a.step()
    alpha_loss = -(log_alpha * (logp + 1.0).detach()).mean()
    opt_alpha.zero_grad()
    alpha_loss.backward()
    opt_alpha.step()
    with torch.no_grad():
        for p, tp in zip(critics.parameters(), targets.parameters()):
            tp.lerp_(p, 0.05)
    if step % 15 == 14:
        print(f"sac {step} {c_loss.item():.4f} {a_loss.item():.4f} alpha {log_alpha.exp().item():.4f}")
