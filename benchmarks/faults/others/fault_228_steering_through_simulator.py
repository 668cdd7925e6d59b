# cause: graph-cut
# symptom: the controller only learns to save effort and never goes to the goal (mean distance to the goal 1.296; without the fault: mean distance to the goal 0.040)
import torch
import torch.nn as nn

torch.manual_seed(9)
DT, STEPS = 0.1, 30


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, position, velocity, goal):
        return 3 * torch.tanh(self.net(torch.cat([position, velocity, goal], dim=1)))


def simulate(controller, position, goal):
    """A sledge with drag, pushed by the controller; returns where it ends, how fast, and the mean effort."""
    velocity = torch.zeros_like(position)
    effort = 0.0
    for _ in range(STEPS):
        force = controller(position, velocity, goal)
        effort = effort + force.square().mean() / STEPS
        with torch.no_grad():  # <- fault
            velocity = velocity + DT * (force - 0.3 * velocity)  # <- fault
            position = position + DT * velocity  # <- fault
    return position, velocity, effort


def starts(n):
    return torch.rand(n, 1) * 4 - 2, torch.rand(n, 1) * 4 - 2


controller = Controller()
optimizer = torch.optim.Adam(controller.parameters(), lr=1e-2)
for i in range(150):
    position, goal = starts(64)
    end, speed, effort = simulate(controller, position, goal)
    loss = ((end - goal) ** 2 + 0.1 * speed**2).mean() + 0.01 * effort
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 30 == 0:
        print(f"iteration {i}: loss {loss.item():.4f}")

with torch.no_grad():
    position, goal = starts(500)
    end, _, _ = simulate(controller, position, goal)
print(f"final mean distance to the goal {(end - goal).abs().mean().item():.3f}")
