# Style transfer on random features with Gram matrices and LBFGS; PGD attacks; an equation of slopes.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_default_dtype(torch.float64)  # the search multiplies rounding errors
cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()).eval().requires_grad_(False)
yy, xx = torch.meshgrid(torch.linspace(0, 1, 16), torch.linspace(0, 1, 16), indexing="ij")
content_img = torch.stack([xx, yy, (xx * yy)])[None]
style_img = torch.stack([torch.sin(20 * xx), torch.cos(20 * yy), torch.sin(9 * (xx + yy))])[None] * 0.5 + 0.5


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


model = nn.Sequential(Normalization(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])))
content_losses, style_losses, i = [], [], 0
for layer in cnn.children():
    if isinstance(layer, nn.Conv2d):
        i += 1
        name = f"conv_{i}"
    elif isinstance(layer, nn.ReLU):
        name = f"relu_{i}"
        layer = nn.ReLU(inplace=False)
    else:
        name = f"pool_{i}"
    model.add_module(name, layer)
    if name == "conv_2":
        content_losses.append(ContentLoss(model(content_img)))
        model.add_module("content_loss", content_losses[-1])
    if name.startswith("conv"):
        style_losses.append(StyleLoss(model(style_img)))
        model.add_module(f"style_loss_{i}", style_losses[-1])
print([n for n, _ in model.named_children()])
input_img = content_img.clone().contiguous().requires_grad_(True)
model.eval()
optimizer = torch.optim.LBFGS([input_img], max_iter=5)
run = [0]
while run[0] <= 15:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(sl.loss for sl in style_losses) * 1000
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        if run[0] % 5 == 0:
            print(f"run {run[0]} style {style_score.item():.5f} content {content_score.item():.5f}")
        return loss

    optimizer.step(closure)
print(len(optimizer.state[input_img]["old_dirs"]), optimizer.state_dict()["param_groups"][0]["history_size"])

net = nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 3))
x, y = torch.rand(12, 1, 8, 8), torch.arange(12) % 3
for k in range(3):
    x[y == k, 0, k * 2 : k * 2 + 3] += 0.7
x.clamp_(0, 1)
opt = torch.optim.Rprop(net.parameters(), lr=0.01)
for _ in range(15):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
print("clean", (net(x).argmax(1) == y).float().mean())


def pgd(model, x, y, eps=0.15, alpha=0.04, steps=5, norm="inf"):
    delta = torch.empty_like(x).uniform_(-eps, eps) if norm == "inf" else torch.zeros_like(x)
    for _ in range(steps):
        delta.requires_grad_()
        (g,) = torch.autograd.grad(F.cross_entropy(model(x + delta), y), delta)
        if norm == "inf":
            delta = (delta.detach() + alpha * g.sign()).clamp(-eps, eps)
        else:
            delta = delta.detach() + alpha * g / g.flatten(1).norm(dim=1).clamp_min(1e-12).view(-1, 1, 1, 1)
            delta = delta.renorm(p=2, dim=0, maxnorm=eps)
        delta = torch.clamp(x + delta, 0, 1) - x
    return (x + delta).detach()


for norm, eps in (("inf", 0.2), ("2", 1.0)):
    adv = pgd(net, x, y, eps=eps, alpha=eps / 3, norm=norm)
    print(norm, (net(adv).argmax(1) == y).float().mean(), F.cross_entropy(net(adv), y), (adv - x).abs().max() <= eps + 1e-6)
xs = x.clone().requires_grad_()
net(xs).gather(1, y[:, None]).sum().backward()
print("saliency", xs.grad.abs().amax(1).flatten(1).topk(3).indices[:3])
steps = torch.linspace(0, 1, 9).view(-1, 1, 1, 1)
path = (x[:1] * steps).requires_grad_()
(g,) = torch.autograd.grad(net(path)[:, 0].sum(), path)
ig = torch.trapezoid(g, steps.flatten(), dim=0) * x[0]
print("integrated", ig.sum(), net(x[:1])[0, 0] - net(torch.zeros(1, 1, 8, 8))[0, 0])


siren = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
coords = torch.stack([xx, yy], -1).reshape(-1, 2).requires_grad_()
opt = torch.optim.Adamax(siren.parameters(), lr=2e-3)
for it in range(5):
    opt.zero_grad()
    out = siren(coords)
    (grad,) = torch.autograd.grad(out, coords, torch.ones_like(out), create_graph=True)
    loss = (grad[:, 0] - out[:, 0]).pow(2).mean()
    loss.backward()
    opt.step()
print(f"slopes {loss.item():.5f}", grad.mean(0))
dy, dx = torch.gradient(out.detach().view(16, 16), spacing=(1 / 15, 1 / 15))
print(dx.mean(), dy.mean(), F.pad(content_img, (1, 1, 1, 1), mode="reflect").shape, F.unfold(content_img, 4, stride=4).shape)
kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
edges = F.conv2d(content_img.transpose(0, 1), kernel[None, None], padding=1).transpose(0, 1)
print(edges.mean((0, 2, 3)), F.interpolate(content_img, scale_factor=0.5, mode="area").shape, F.grid_sample(content_img, F.affine_grid(torch.eye(2, 3)[None], (1, 3, 8, 8), align_corners=False), align_corners=False).mean())
