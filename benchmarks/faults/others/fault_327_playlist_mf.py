# cause: division-by-zero
# symptom: the loss is nan from the first batch that holds a user without a single rating (0 / 0 in the user's mean)
"""Matrix factorisation for song ratings, with a per-user average of the squared error."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Factoriser(nn.Module):
    def __init__(self, users, songs, rank=8):
        super().__init__()
        self.user = nn.Embedding(users, rank)
        self.song = nn.Parameter(0.1 * torch.randn(songs, rank))
        self.song_bias = nn.Parameter(torch.zeros(songs))
        nn.init.normal_(self.user.weight, std=0.1)

    def forward(self, user_ids):
        return self.user(user_ids) @ self.song.T + self.song_bias


def listener_data(users=600, songs=80, rank=3):
    taste = torch.randn(users, rank)
    style = torch.randn(songs, rank)
    ratings = taste @ style.T + torch.randn(songs) + 0.1 * torch.randn(users, songs)
    activity = 0.5 * torch.rand(users, 1)
    activity[torch.rand(users) < 0.05] = 0.0  # signed up, never rated
    observed = torch.rand(users, songs) < activity
    return ratings, observed.float()


def user_mean_error(pred, ratings, mask):
    sq = (pred - ratings) ** 2 * mask
    per_user = sq.sum(dim=1) / mask.sum(dim=1)  # <- fault
    return per_user.mean()


def main():
    torch.manual_seed(9)
    ratings, observed = listener_data()
    held_out = (torch.rand_like(observed) < 0.1).float() * observed
    train_mask = observed - held_out
    loader = DataLoader(TensorDataset(torch.arange(len(ratings)), ratings, train_mask),
                        batch_size=50, shuffle=True)
    model = Factoriser(*ratings.shape)
    opt = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.05)
    for epoch in range(40):
        for users, stars, mask in loader:
            loss = user_mean_error(model(users), stars, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 4 == 3:
            with torch.no_grad():
                gap = (model(torch.arange(len(ratings))) - ratings) * held_out
                rmse = (gap.pow(2).sum() / held_out.sum()).sqrt()
            print(f"epoch {epoch + 1}: loss {loss.item():.4f} held-out rmse {rmse.item():.4f}")


if __name__ == "__main__":
    main()
