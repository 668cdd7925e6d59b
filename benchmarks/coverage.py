"""python -m benchmarks.coverage [--train] [NAME ...]: which models of other packages become programs.

It runs where tinytorch takes the place of PyTorch (`python -m tinytorch as-torch`), with the packages torchvision and
transformers. Each model has a small configuration and random weights. It is called with batches of several sizes (and,
of a model for texts, several lengths), in eager mode and compiled, and the results are compared bit for bit. A line has
the programs, the calls that ran as programs, those that were recorded or ran as Python, and the graph breaks.

With `--train`, what is compiled is a step of training: a loss, its gradients and a step of SGD (of models of images) or
AdamW. Two copies of the model take the same steps, with dropout and batch norm as in training, and then the losses, the
parameters, the buffers and the gradients are compared bit for bit.
"""

from __future__ import annotations

import copy
import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

VISION = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 "
    "mobilenet_v2 mobilenet_v3_small regnet_x_400mf resnet18 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_0 swin_t "
    "swin_v2_t vgg11 vit_b_16 wide_resnet50_2 segmentation.fcn_resnet50 segmentation.lraspp_mobilenet_v3_large"
).split()
TEXT = (
    "bert roberta electra distilbert clip_text_model gpt2 llama qwen2 mistral gpt_neox opt t5 vit whisper resnet"
).split()
STEPS = 6  # of training
SIZES = [(1, 8), (2, 16), (2, 16), (3, 8), (2, 24), (4, 16), (5, 12), (2, 16)]  # of batches, and lengths of texts
#: Options of configurations; each configuration has some of them.
SMALL = {
    **dict.fromkeys("hidden_size d_model n_embd dim embedding_size emb_dim word_embed_proj_dim".split(), 32),
    **dict.fromkeys("intermediate_size hidden_dim d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim".split(), 64),
    **dict.fromkeys("num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers".split(), 2),
    **dict.fromkeys(
        "num_attention_heads num_key_value_heads n_head n_heads num_heads encoder_attention_heads "
        "decoder_attention_heads".split(), 2),
    "head_dim": 16, "d_kv": 16, "vocab_size": 99, "image_size": 32, "patch_size": 8, "max_position_embeddings": 64,
    "max_source_positions": 20, "num_mel_bins": 8, "embedding_dim": 8, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


def vision(torch: Any, name: str) -> tuple[Any, Callable[[int, int], dict[str, Any]]]:
    """Return a model of torchvision, and a function that returns its arguments."""
    module = importlib.import_module("torchvision.models")
    make: Any = module
    for part in name.split("."):
        make = getattr(make, part)
    options = {"weights_backbone": None} if "." in name else {}
    size = {"inception_v3": 299, "maxvit_t": 224, "vit_b_16": 224}.get(name, 64)
    model = make(weights=None, **options, **({"init_weights": False} if name in ("googlenet", "inception_v3") else {}))
    return model, lambda batch, length: {"x": torch.randn(batch, 3, size, size)}


def text(torch: Any, name: str) -> tuple[Any, Callable[[int, int], dict[str, Any]]]:
    """Return a model of transformers in a small configuration, and a function that returns its arguments."""
    module = importlib.import_module("transformers")
    config = module.AutoConfig.for_model(name)
    for key, value in SMALL.items():
        if hasattr(config, key):
            setattr(config, key, value)
    if name == "resnet":
        config.hidden_sizes, config.depths = [8, 16], [1, 1]

    def given(batch: int, length: int) -> dict[str, Any]:
        if name in ("vit", "resnet"):
            return {"pixel_values": torch.randn(batch, 3, 32, 32)}
        tokens = torch.randint(3, 99, (batch, length))
        if name == "whisper":
            return {"input_features": torch.randn(batch, 8, 40), "decoder_input_ids": tokens}
        return {"input_ids": tokens, **({"decoder_input_ids": tokens.clone()} if name == "t5" else {})}

    return module.AutoModel.from_config(config), given


def covered(torch: Any, model: Any, given: Callable[[int, int], dict[str, Any]]) -> tuple[bool, str]:
    """Return whether a model is one program for each call with the eager numbers, and a line about its calls."""
    model = model.eval()
    compiled = torch.compile(model)
    equal = True
    with torch.no_grad():
        for batch, length in SIZES:
            args = given(batch, length)
            args = {"x": args["x"]} if "x" in args else args
            call = (lambda f, args=args: f(args["x"])) if "x" in args else lambda f, args=args: f(**args)
            equal &= all(torch.equal(a, b) for a, b in zip(tensors(call(model)), tensors(call(compiled)), strict=True))
    return counted(compiled._compiled, equal)


def trained(torch: Any, model: Any, given: Callable[[int, int], dict[str, Any]]) -> tuple[bool, str]:
    """Return whether a step of training is one program for each call with the eager numbers, and a line about it."""
    losses: list[Any] = []
    states: list[Any] = []
    steps: list[Any] = []
    for own in (model.train(), copy.deepcopy(model).train()):
        kind = torch.optim.SGD if "x" in given(1, 8) else torch.optim.AdamW
        optimizer = kind(own.parameters(), lr=1e-3)

        def step(args: dict[str, Any], own: Any = own, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            result = own(args["x"]) if "x" in args else own(**args)
            loss = sum(x.square().mean() for x in tensors(result) if x.requires_grad)
            loss.backward()
            optimizer.step()
            return loss.detach()

        steps.append(torch.compile(step) if steps else step)
        torch.manual_seed(1)
        losses.append([steps[-1](given(2, 16)) for _ in range(STEPS)])
        gradients = [p.grad for p in own.parameters() if p.grad is not None]
        states.append([*losses[-1], *own.state_dict().values(), *gradients])
    equal = len(states[0]) == len(states[1]) and all(map(torch.equal, *states))
    return counted(steps[1], equal)


def counted(compiled: Any, equal: bool) -> tuple[bool, str]:
    """Return whether a compiled function is one program for each call, and a line about its calls."""
    parts = list(compiled.whole())
    breaks = len({each for part in parts for each in part.graph_breaks})
    ran = sum(variant.runs for part in parts for variant in part.variants)
    numbers = f"ran {ran}, recorded {compiled.recorded}, Python {compiled.plain}, graph breaks {breaks}"
    line = f"{len(compiled.variants)} programs, {numbers}" + ("" if equal else ", OTHER NUMBERS")
    return equal and not breaks and not compiled.failed, line


def tensors(x: Any) -> Iterator[Any]:
    """Yield the tensors in a result."""
    if isinstance(x, (tuple, list)):
        for each in x:
            yield from tensors(each)
    elif isinstance(x, dict):
        yield from tensors(list(x.values()))
    elif hasattr(x, "requires_grad"):
        yield x


def main(names: list[str]) -> None:
    """Print a line for each model, and how many are one program for each call."""
    import torch

    if not hasattr(torch, "inspect") or "tinytorch" not in torch.__version__:
        sys.exit("tinytorch has to take the place of PyTorch here: python -m tinytorch as-torch")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    look = trained if "--train" in names else covered
    names = [name for name in names if name != "--train"]
    count = total = 0
    for make, of in ((vision, VISION), (text, TEXT)):
        for name in of if not names else [name for name in of if name in names]:
            torch.manual_seed(0)
            whole, line = look(torch, *make(torch, name))
            count, total = count + whole, total + 1
            print(f"{name:40} {'one program for each call' if whole else 'in parts':26} {line}", flush=True)
    print(f"{count} of {total}")


if __name__ == "__main__":
    main(sys.argv[1:])
