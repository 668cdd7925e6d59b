"""The advantage is used in two losses that are backpropagated apart."""

import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
oa, oc = torch.optim.SGD(actor.parameters(), 0.1), torch.optim.SGD(critic.parameters(), 0.1)
s, r = torch.rand(5, 4), torch.rand(5)
logp = actor(s).log_softmax(-1)[:, 0]
adv = r - critic(s).squeeze(1)
actor_loss = -(logp * adv).mean()
#! actor_loss = -(logp * adv.detach()).mean()
actor_loss.backward()
oa.step()
critic_loss = adv.pow(2).mean()
critic_loss.backward()
oc.step()
