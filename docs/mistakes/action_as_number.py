"""The action of a policy is not a tensor."""

import torch

torch.manual_seed(0)
dist = torch.distributions.Categorical(logits=torch.zeros(3))
action = dist.sample().item()
logp = dist.log_prob(action)
#! logp = dist.log_prob(torch.tensor(action))
