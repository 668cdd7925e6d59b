# remedy: loss_g was computed with the discriminator's old weights: score = D(fake) again after opt_d.step(), then loss_g.backward()
import torch
import torch.nn as nn

G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
real = torch.randn(16, 2)

for step in range(3):
    fake = G(torch.randn(16, 8))
    score = D(fake)
    loss_g = bce(score, torch.ones(16, 1))
    loss_d = bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()  # <- fault
    opt_g.zero_grad()
    loss_g.backward()  # <- fault
    opt_g.step()
