import torch
import torch.nn as nn

torch.manual_seed(1)
LR_G, LR_D, N_IDEAS, ART_COMPONENTS, BATCH = 0.001, 0.001, 5, 15, 32
PAINT_POINTS = torch.linspace(-1, 1, ART_COMPONENTS).repeat(BATCH, 1)


def artist_works():
    a = torch.empty(BATCH, 1).uniform_(1, 2)
    return a * PAINT_POINTS.pow(2) + (a - 1)


G = nn.Sequential(nn.Linear(N_IDEAS, 64), nn.ReLU(), nn.Linear(64, ART_COMPONENTS))
D = nn.Sequential(
    nn.Linear(ART_COMPONENTS, 64), nn.LeakyReLU(0.2, inplace=True), nn.Linear(64, 1), nn.Sigmoid()
)
opt_D = torch.optim.Adam(D.parameters(), lr=LR_D, betas=(0.5, 0.999))
opt_G = torch.optim.Adam(G.parameters(), lr=LR_G, betas=(0.5, 0.999))
for step in range(40):
    paintings = artist_works()
    ideas = torch.randn(BATCH, N_IDEAS, requires_grad=True)
    G_paintings = G(ideas)
    prob_artist1 = D(G_paintings)
    G_loss = torch.mean(torch.log(1.0 - prob_artist1))
    opt_G.zero_grad()
    G_loss.backward()
    opt_G.step()
    prob_artist0 = D(paintings)
    prob_artist1 = D(G_paintings.detach())
    D_loss = -torch.mean(torch.log(prob_artist0) + torch.log(1.0 - prob_artist1))
    opt_D.zero_grad()
    D_loss.backward(retain_graph=True)
    opt_D.step()
    if step % 10 == 0:
        print(
            f"D accuracy={prob_artist0.data.numpy().mean():.4f} D score={-D_loss.data.numpy():.4f}"
        )
criterion = nn.BCEWithLogitsLoss()
logits = nn.Linear(ART_COMPONENTS, 1)
real = torch.full((BATCH, 1), 1.0)
print(
    criterion(logits(paintings), real),
    criterion(logits(G_paintings.detach()), torch.zeros_like(real)),
)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    (gradients,) = torch.autograd.grad(
        outputs=scores,
        inputs=mixed,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
        retain_graph=True,
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


critic = nn.Sequential(nn.Linear(ART_COMPONENTS, 32), nn.Tanh(), nn.Linear(32, 1))
opt_C = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
for step in range(5):
    real, fake = artist_works(), G(torch.randn(BATCH, N_IDEAS)).detach()
    gp = gradient_penalty(critic, real, fake)
    loss = critic(fake).mean() - critic(real).mean() + 10 * gp
    opt_C.zero_grad()
    loss.backward()
    opt_C.step()
    print(f"wgan-gp {loss.item():.4f} {gp.item():.4f}")
