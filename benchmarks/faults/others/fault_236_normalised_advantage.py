# cause: division-by-zero
# symptom: once all returns of a batch are alike, the policy becomes nan and the next draw stops with an error (RuntimeError; without the fault: mean of doors 4.000)
import torch
import torch.nn as nn

torch.manual_seed(55)

# A ladder of four doors: at each, one of three keys opens. Reward: doors opened in a row.
DOORS, KEYS = 4, 3
right_key = torch.randint(KEYS, (DOORS,))


def rollout(policy, n):
    log_probs, open_, reward = torch.zeros(n), torch.ones(n), torch.zeros(n)
    for door in range(DOORS):
        logits = policy(torch.eye(DOORS)[door].expand(n, -1))
        p = torch.softmax(logits, dim=1)
        key = torch.multinomial(p, 1)
        log_probs = log_probs + torch.log(p.gather(1, key) + 1e-9).squeeze(1)
        open_ = open_ * (key.squeeze(1) == right_key[door])
        reward = reward + open_
    return log_probs, reward


def normalise(values):
    return (values - values.mean()) / values.std()  # <- fault


policy = nn.Sequential(nn.Linear(DOORS, 24), nn.Tanh(), nn.Linear(24, KEYS))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
for update in range(300):
    log_probs, reward = rollout(policy, 32)
    loss = -(normalise(reward) * log_probs).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    if update % 30 == 0:
        print(f"update {update}: loss {loss.item():.3f}, doors {reward.mean().item():.2f}")

with torch.no_grad():
    _, reward = rollout(policy, 1000)
print(f"final mean of doors {reward.mean().item():.3f}")
