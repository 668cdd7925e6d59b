import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable

x_data = Variable(torch.Tensor([[1.0], [2.0], [3.0], [4.0]]))
y_data = Variable(torch.Tensor([[0.0], [0.0], [1.0], [1.0]]))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)

    def forward(self, x):
        return F.sigmoid(self.linear(x))


model = Model()
criterion = nn.BCELoss(reduction="mean")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(200):
    y_pred = model(x_data)
    loss = criterion(y_pred, y_data)
    if epoch % 40 == 0:
        print(epoch, loss.data.item(), loss.data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
hour_var = Variable(torch.Tensor([[1.0]]))
print("predict 1 hour ", 1.0, model(hour_var).data[0][0] > 0.5)
hour_var = Variable(torch.Tensor([[7.0]]))
print("predict 7 hours", 7.0, model(hour_var).data[0][0] > 0.5)
n = torch.ones(50, 2)
x0, x1 = torch.normal(2 * n, 1), torch.normal(-2 * n, 1)
x = torch.cat((x0, x1), 0).type(torch.FloatTensor)
y = torch.cat((torch.zeros(50), torch.ones(50)), 0).type(torch.LongTensor)
net = nn.Sequential(nn.Linear(2, 10), nn.ReLU(), nn.Linear(10, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
loss_func = nn.CrossEntropyLoss()
for t in range(20):
    out = net(x)
    loss = loss_func(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
prediction = torch.max(out, 1)[1]
pred_y = prediction.data.numpy()
accuracy = float((pred_y == y.data.numpy()).astype(int).sum()) / float(y.size(0))
print("Accuracy=%.2f" % accuracy, loss)
with torch.no_grad():
    logits = model.linear(x_data)
    print(
        torch.allclose(torch.sigmoid(logits), model(x_data)), (logits > 0).long().flatten().tolist()
    )
