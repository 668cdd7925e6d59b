import torch
from torch import nn
from torch.utils import data

true_w = torch.tensor([2, -3.4])
true_b = 4.2
X = torch.randn(1000, 2)
features, labels = X, (X @ true_w + true_b + 0.01 * torch.randn(1000)).unsqueeze(1)


def load_array(data_arrays, batch_size, is_train=True):
    dataset = data.TensorDataset(*data_arrays)
    return data.DataLoader(dataset, batch_size, shuffle=is_train)


batch_size = 10
data_iter = load_array((features, labels), batch_size)
print(next(iter(data_iter)))
net = nn.Sequential(nn.Linear(2, 1))
net[0].weight.data.normal_(0, 0.01)
net[0].bias.data.fill_(0)
loss = nn.MSELoss()
trainer = torch.optim.SGD(net.parameters(), lr=0.03)
num_epochs = 3
for epoch in range(num_epochs):
    for X, y in data_iter:
        l = loss(net(X), y)  # noqa: E741
        trainer.zero_grad()
        l.backward()
        trainer.step()
    l = loss(net(features), labels)  # noqa: E741
    print(f"epoch {epoch + 1}, loss {l:f}")
w = net[0].weight.data
print("error in w:", true_w - w.reshape(true_w.shape))
b = net[0].bias.data
print("error in b:", true_b - b)
print(net, trainer)
