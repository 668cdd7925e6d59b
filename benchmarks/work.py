"""The workloads: the names of the rows, their functions, and the highest allowed ratio to PyTorch's time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks import batches, models, tasks

__all__ = ["WORK", "Work"]


class Work(NamedTuple):
    """A workload; `make(torch)` returns the function that is timed, for one of the libraries."""

    what: str
    make: Callable[[Any], Callable[[], Any]]
    aim: float | None = None  # upper limit of the ratio of our time to PyTorch's
    times: int = 10  # calls per turn
    per: int = 1  # ops per call; if there are several, the table shows microseconds per op


WORK = {
    "op": Work("a * b, 8 x 8, recorded", tasks.forward, 1.0, 5, tasks.TIMES),
    "op-backward": Work("a * b, 8 x 8, recorded, and backward", tasks.backward, 0.9, 5, tasks.TIMES),
    "op-no-grad": Work("a * b, 8 x 8, no_grad", tasks.no_grad, 1.0, 5, tasks.TIMES),
    "chain": Work("chain of 100 multiplications, and backward", tasks.chain, 0.85, 100),
    "micro-mlp": Work("micro MLP 2-16-16-1, batch 100, SGD", models.micro_mlp, 0.55, 100),
    "pinn": Work("PINN 2-64-64-1, 256 points, second derivatives", models.pinn, 0.7, 20),
    "pinn-2000": Work("PINN, 2,000 points, 4 layers of 20", partial(models.pinn, points=2000, width=20, depth=4), 0.7),
    "step": Work("quickstart, batch 64, SGD", partial(models.mlp, batch=64, name="SGD"), 0.85, 20),
    "step-adam": Work("quickstart, batch 64, Adam", partial(models.mlp, batch=64), 0.85, 20),
    "step-256": Work("quickstart, batch 256, SGD", partial(models.mlp, name="SGD"), 0.88, 20),
    "step-256-adam": Work("quickstart, batch 256, Adam", models.mlp, 0.88, 20),
    "lstm": Work("LSTM 28-128, batch 64 x 28, Adam", models.lstm, 0.9),
    "gpt": Work("GPT 4 x 128, batch 12 x 64, AdamW", models.gpt, 0.8),
    "cnn": Work("CNN of 32 and 64 channels, batch 64 of 28 x 28", models.cnn, 0.8),
    "resnet": Work("ResNet of 16 and 32 channels, batch 32 of 32 x 32", models.resnet, 1.0),
    "mobilenet": Work("MobileNet, depthwise, batch 32 of 32 x 32", models.mobilenet),
    "unet": Work("diffusion U-Net, batch 16 of 32 x 32", models.unet),
    "dcgan": Work("DCGAN, both networks, batch 32 of 32 x 32", models.dcgan),
    "vae": Work("VAE 784-256-16, batch 128", models.vae),
    "transformer": Work("Transformer encoder 2 x 64, batch 32 x 48", models.transformer),
    "gru": Work("bidirectional GRU, packed, batch 32 x 40", models.gru),
    "tcn": Work("dilated convolutions, batch 32 of 8 x 256", models.tcn),
    "graph": Work("graph attention, 2,000 nodes, 16,000 edges", models.graph),
    "recommender": Work("embeddings of a recommender, batch 512", models.recommender),
    "actor-critic": Work("actor and critic, an episode of 20", models.actor_critic),
    "decide": Work("inference: MLP 16-64-64-4, batch 1", tasks.small_mlp, None, 100),
    "classify": Work("inference: ResNet, 32 images", tasks.resnet),
    "generate": Work("inference: GPT generates 16 characters", tasks.generate),
    "loader": Work("data: an epoch of 1,024 augmented images", tasks.loader, 1.0, 2),
    "loader-workers": Work("data: the same, two workers", partial(tasks.loader, workers=2), 1.0, 2),
    "clusters": Work("4 steps of k-means, 4,000 points", tasks.clusters),
    "neighbours": Work("nearest neighbours of 500 points among 2,000", tasks.neighbours),
    "per-sample-mlp": Work("vmap: gradients of 64 samples, MLP 784-256-128-10", batches.per_sample_mlp, 0.8, 5),
    "per-sample-cnn": Work("vmap: gradients of 64 samples, two convolutions", batches.per_sample_cnn, 0.8, 5),
    "jacobian": Work("vmap: Jacobian of an MLP 32-64-64-32", batches.jacobian, 0.8, 20),
    "hessian": Work("vmap: Hessian of a loss by 200 parameters", batches.hessian, 0.8, 10),
    "ensemble": Work("vmap: 100 MLPs 64-64-64-10, 32 inputs", batches.ensemble, 0.8, 20),
}
