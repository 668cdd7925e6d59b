# cause: sqrt-at-zero
# symptom: the first stress value is finite, all coordinates and every later loss are nan (the gradient of sqrt at the zero diagonal)
# Multidimensional scaling: recover a map of cities from the table of their distances.
import torch

torch.manual_seed(30)
N = 60
true_xy = torch.rand(N, 2) * 10


def pair_distances(xy):
    diff = xy[:, None, :] - xy[None, :, :]
    return torch.sqrt((diff ** 2).sum(dim=-1))  # <- fault


with torch.no_grad():
    noise = 0.05 * torch.randn(N, N)
    table = pair_distances(true_xy) + (noise + noise.T) * (1 - torch.eye(N))

coords = torch.randn(N, 2, requires_grad=True)
adam = torch.optim.Adam([coords], lr=0.2)
decay = torch.optim.lr_scheduler.ExponentialLR(adam, gamma=0.992)

for step in range(500):
    adam.zero_grad()
    stress = ((pair_distances(coords) - table) ** 2).mean()
    stress.backward()
    adam.step()
    decay.step()
    if step % 50 == 0 or step == 499:
        print(f"step {step:3d}  stress {stress.item():.5f}  lr {adam.param_groups[0]['lr']:.4f}")

# Procrustes against the real map
a = coords.detach() - coords.detach().mean(0)
b = true_xy - true_xy.mean(0)
if torch.isfinite(a).all():
    u, _, vt = torch.linalg.svd(a.T @ b)
    print("mean position error", (a @ u @ vt - b).norm(dim=1).mean().item())
else:
    print("no map: coordinates are not finite")
