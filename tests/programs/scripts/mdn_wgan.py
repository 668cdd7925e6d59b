# A mixture density network on an inverse problem, and a Wasserstein GAN with gradient penalty.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import grad as torch_grad
from torch.distributions import Categorical, MixtureSameFamily, Normal

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super(MDN, self).__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        pi = F.softmax(self.z_pi(z_h), -1)
        return pi, self.z_mu(z_h), torch.exp(self.z_sigma(z_h))


def mdn_loss(pi, mu, sigma, y):
    m = Normal(loc=mu, scale=sigma)
    log_prob = m.log_prob(y.expand_as(mu))
    return -torch.logsumexp(log_prob + pi.log(), dim=1).mean()


t = torch.linspace(-10, 10, 200).view(-1, 1)
x = 7 * torch.sin(0.75 * t) + 0.5 * t + torch.randn_like(t)
model = MDN(20, 5)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, centered=True)
for epoch in range(80):
    pi, mu, sigma = model(x)
    loss = mdn_loss(pi, mu, sigma, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        print(epoch, f"{loss.data.tolist():.4f}")
pi, mu, sigma = model(x[:5])
k = torch.multinomial(pi, 1).view(-1)
print(k, torch.normal(mu, sigma)[torch.arange(5), k])
mix = MixtureSameFamily(Categorical(probs=pi), Normal(mu, sigma))
print(mix.log_prob(t[:5, 0]), mix.cdf(t[:5, 0]))


class Generator(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.latent = latent
        self.net = nn.Sequential(
            nn.ConvTranspose2d(latent, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 16, 4, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(16, 1, 4, 1, 0),
        )

    def forward(self, x):
        return self.net(x).flatten()


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("Norm") != -1 and m.weight is not None:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


G, D = Generator(8).apply(weights_init), Critic().apply(weights_init)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij"))


def real_batch(n):
    c = torch.rand(n, 2, 1, 1) - 0.5
    return torch.tanh(4 * (0.4 - (grid - c).norm(dim=1, keepdim=True)))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1).expand_as(real)
    mixed = (alpha * real.data + (1 - alpha) * fake.data).requires_grad_(True)
    out = D(mixed)
    gradients = torch_grad(outputs=out, inputs=mixed, grad_outputs=torch.ones(out.size()), create_graph=True, retain_graph=True)[0]
    gradients = gradients.view(real.size(0), -1)
    return 10 * ((torch.sqrt(torch.sum(gradients**2, dim=1) + 1e-12) - 1) ** 2).mean()


for step in range(6):
    for p in D.parameters():
        p.requires_grad = True
    for _ in range(2):
        real = real_batch(8)
        fake = G(torch.randn(8, 8)).detach()
        opt_d.zero_grad()
        gp = gradient_penalty(real, fake)
        d_loss = D(fake).mean() - D(real).mean() + gp
        d_loss.backward()
        opt_d.step()
    for p in D.parameters():
        p.requires_grad = False
    opt_g.zero_grad()
    g_loss = -D(G(torch.randn(8, 8))).mean()
    g_loss.backward()
    opt_g.step()
    print(f"step {step} d {d_loss.item():.4f} g {g_loss.item():.4f} gp {gp.item():.4f}")
G.eval()
with torch.no_grad():
    img = G(torch.randn(2, 8))
print(img.shape, img.mean(), img.amin((1, 2, 3)), img.amax(dim=(1, 2, 3)))
