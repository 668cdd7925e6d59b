"""Schedulers: the same floats as PyTorch's over hundreds of steps, states, warnings and errors."""

from __future__ import annotations

import copy
import importlib
import math
import warnings

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared, outcome, programs, same_as_pytorch

pytestmark = pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*before:UserWarning")


def schedulers(t):
    return importlib.import_module(f"{t.__name__}.optim.lr_scheduler")


def swalr(s):
    return importlib.import_module(s.__name__.replace("lr_scheduler", "swa_utils")).SWALR


def optimizer_of(t, rates=(0.5, 0.01), kind="SGD", **options):
    groups = [{"params": [t.ones(2, requires_grad=True)], "lr": lr} for lr in rates]
    return getattr(t.optim, kind)(groups, **options)


class Decay:
    """A callable with data, which states keep."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        return self.rate**x


SIMPLE = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.95**e),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, Decay(0.9)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 1 - 1 / (e + 2)),
    "step": lambda s, o: s.StepLR(o, 7, 0.3), "multistep": lambda s, o: s.MultiStepLR(o, [3, 8, 8, 30], 0.7),
    "constant": lambda s, o: s.ConstantLR(o), "constant long": lambda s, o: s.ConstantLR(o, 0.3, 9),
    "linear": lambda s, o: s.LinearLR(o), "linear down": lambda s, o: s.LinearLR(o, 0.9, 0.1, 40),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.97), "polynomial": lambda s, o: s.PolynomialLR(o),
    "polynomial of 3": lambda s, o: s.PolynomialLR(o, 60, 3.0), "cosine": lambda s, o: s.CosineAnnealingLR(o, 20),
    "cosine of 7": lambda s, o: s.CosineAnnealingLR(o, 7, 0.003),
}  # fmt: skip
OTHER = {
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "longer restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "triangular": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 11),
    "triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 5, 9, mode="triangular2"),
    "exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, mode="exp_range", gamma=0.98),
    "scaled by cycle": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, scale_fn=Decay(0.9)),
    "scaled by step": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 5, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations", cycle_momentum=False
    ),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=201),
    "one cycle, linear": lambda s, o: s.OneCycleLR(
        o, [0.1, 0.7], epochs=21, steps_per_epoch=10, anneal_strategy="linear", pct_start=0.2
    ),
    "one cycle, three phases": lambda s, o: s.OneCycleLR(
        o, 0.1, 201, three_phase=True, div_factor=10.0, cycle_momentum=False
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)], [5, 40]
    ),
    "sequential restarts": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.CosineAnnealingWarmRestarts(o, 10)], [4]
    ),
    "sequential in sequential": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o, 0.5, 2), s.StepLR(o, 3)], [4]), s.PolynomialLR(o, 30)], [10]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.97)]),
    "swa": lambda s, o: swalr(s)(o, [0.05, 0.07]), "swa, linear": lambda s, o: swalr(s)(o, 0.05, 33, "linear"),
    "swa at once": lambda s, o: swalr(s)(o, 0.05, 0),
}  # fmt: skip
ALL = {**SIMPLE, **OTHER}


def plain(value):
    """Return a state with what is of no library."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def rates_and_momenta(optimizer):
    return [{k: v for k, v in group.items() if k in ("lr", "momentum", "betas")} for group in optimizer.param_groups]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
@compared(rtol=0, atol=0)
def test_the_same_floats_over_hundreds_of_steps(t, make, kind):
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = optimizer_of(t, kind=kind, **options)
    scheduler = make(schedulers(t), optimizer)
    path = [(scheduler.get_last_lr(), rates_and_momenta(optimizer))]
    for _ in range(200):
        optimizer.step()
        scheduler.step()
        path.append((scheduler.get_last_lr(), rates_and_momenta(optimizer), getattr(scheduler, "last_epoch", 0)))
    options = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return copy.deepcopy(path), options, plain(scheduler.state_dict())


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
@compared(rtol=1e-6)
def test_a_tensor_for_a_rate_is_changed_in_place(t, make):
    if "SWALR" in str(make):
        return None
    optimizer = t.optim.SGD([t.ones(2, requires_grad=True)], lr=t.tensor(0.5), momentum=0.9)
    optimizer.add_param_group({"params": [t.ones(2, requires_grad=True)], "lr": t.tensor(0.25)})
    lr = optimizer.param_groups[0]["lr"]
    scheduler = make(schedulers(t), optimizer)
    path = []
    for _ in range(12):
        optimizer.step()
        scheduler.step()
        path.append(lr.clone())
    last = [x.clone() if hasattr(x, "clone") else x for x in scheduler.get_last_lr()]
    return path, optimizer.param_groups[0]["lr"] is lr, last


@needs_oracle
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_states_go_on(make):
    """A scheduler made anew and loaded goes on as the other, also from PyTorch's state."""
    for source in (tinytorch, torch):
        optimizer = optimizer_of(source, kind="SGD", momentum=0.9)
        scheduler = make(schedulers(source), optimizer)
        for _ in range(11):
            optimizer.step()
            scheduler.step()
        saved, groups = copy.deepcopy(scheduler.state_dict()), optimizer.state_dict()

        ours = optimizer_of(tinytorch, kind="SGD", momentum=0.9)
        other = make(schedulers(tinytorch), ours)
        ours.load_state_dict(copy.deepcopy(groups))
        keys = set(saved)
        other.load_state_dict(saved)
        assert set(saved) == keys
        for _ in range(15):
            for o, s in ((optimizer, scheduler), (ours, other)):
                o.step()
                s.step()
            assert scheduler.get_last_lr() == other.get_last_lr()
            assert [g["momentum"] for g in optimizer.param_groups] == [g["momentum"] for g in ours.param_groups]


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
@compared(rtol=0, atol=0)
def test_closed_forms(t, make):
    optimizer = optimizer_of(t, momentum=0.9)
    scheduler = make(schedulers(t), optimizer)
    if not hasattr(scheduler, "_get_closed_form_lr"):
        return None
    path = []
    for epoch in (3, 1, 0, 7, 8, 30, 31, 100):
        optimizer.step()
        scheduler.step(epoch)
        path.append(scheduler.get_last_lr())
    return path


@compared
def test_restarts_at_fractions_of_epochs(t):
    optimizer = optimizer_of(t)
    one = schedulers(t).CosineAnnealingWarmRestarts(optimizer, 3, 2)
    path = []
    for k in range(60):
        one.step(k / 4)
        path.append((one.get_last_lr(), one.last_epoch, one.T_i))
    one.step(-1)
    return path


@pytest.mark.parametrize("name", [
    "step", "linear", "cosine", "exponential", "constant", "polynomial", "lambda", "multiplicative", "restarts",
    "triangular", "one cycle",
])  # fmt: skip
@compared(rtol=0, atol=0)
def test_resuming_after_an_epoch(t, name):
    s = schedulers(t)
    optimizer = optimizer_of(t, momentum=0.9)
    scheduler = ALL[name](s, optimizer)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    fresh = optimizer_of(t, momentum=0.9)
    fresh.load_state_dict(optimizer.state_dict())
    again = {
        "step": lambda: s.StepLR(fresh, 7, 0.3, last_epoch=3),
        "linear": lambda: s.LinearLR(fresh, last_epoch=3),
        "cosine": lambda: s.CosineAnnealingLR(fresh, 20, last_epoch=3),
        "exponential": lambda: s.ExponentialLR(fresh, 0.97, last_epoch=3),
        "constant": lambda: s.ConstantLR(fresh, last_epoch=3),
        "polynomial": lambda: s.PolynomialLR(fresh, last_epoch=3),
        "lambda": lambda: s.LambdaLR(fresh, lambda e: 0.95**e, last_epoch=3),
        "multiplicative": lambda: s.MultiplicativeLR(fresh, lambda e: 0.5, last_epoch=3),
        "restarts": lambda: s.CosineAnnealingWarmRestarts(fresh, 7, last_epoch=3),
        "triangular": lambda: s.CyclicLR(fresh, 0.01, 0.1, 11, last_epoch=3),
        "one cycle": lambda: s.OneCycleLR(fresh, 0.1, total_steps=201, last_epoch=3),
    }[name]()
    path = [again.get_last_lr(), again.last_epoch]
    for _ in range(6):
        fresh.step()
        again.step()
        path.append(again.get_last_lr())
    return path


PLATEAU = [
    {}, {"mode": "max", "patience": 2}, {"threshold_mode": "abs", "threshold": 0.05, "patience": 1, "cooldown": 3},
    {"mode": "max", "threshold_mode": "abs", "patience": 0, "min_lr": [0.1, 0.001]},
    {"patience": 1, "factor": 0.5, "min_lr": 0.01, "eps": 0.05},
]  # fmt: skip


@pytest.mark.parametrize("options", PLATEAU, ids=lambda o: "-".join(map(str, o)) or "default")
@compared(rtol=0, atol=0)
def test_plateaus(t, options):
    optimizer = optimizer_of(t)
    scheduler = schedulers(t).ReduceLROnPlateau(optimizer, **options)
    path = []
    for k in range(150):
        metric = math.sin(k / 9) + 3 / (k + 1)
        scheduler.step(t.tensor(metric, dtype=t.float64) if k % 2 else metric)
        path.append((scheduler.get_last_lr(), scheduler.best, scheduler.num_bad_epochs, scheduler.in_cooldown))
    other = schedulers(t).ReduceLROnPlateau(optimizer)
    other.load_state_dict(scheduler.state_dict())
    other.step(100.0)
    return path, plain(scheduler.state_dict()), other.get_last_lr(), other.best


@pytest.mark.parametrize("options", [{}, {"min_lr": [0.1, 0.1]}])
@compared
def test_a_group_added_after_the_plateau_scheduler(t, options):
    optimizer = optimizer_of(t)
    scheduler = schedulers(t).ReduceLROnPlateau(optimizer, patience=0, **options)
    optimizer.add_param_group({"params": [t.ones(2, requires_grad=True)], "lr": 1.0})
    for metric in (1.0, 2.0, 3.0):
        scheduler.step(metric)
    return scheduler.get_last_lr()


BAD = programs("""
    s.LRScheduler(3); s.LRScheduler(o); s.StepLR(o, 3, last_epoch=2); s.LambdaLR(o, [lambda e: e])
    s.MultiplicativeLR(o, [lambda e: e]); s.MultiplicativeLR(o, 3); s.ConstantLR(o, 1.5); s.ConstantLR(o, -0.5)
    s.LinearLR(o, 0.0); s.LinearLR(o, 0.5, 1.5); s.SequentialLR(o, [], []); s.SequentialLR(o, [s.StepLR(o, 3)], [3])
    s.SequentialLR(o, [s.StepLR(o, 3), 4], [3]); s.SequentialLR(o, [s.ReduceLROnPlateau(o)], [])
    s.SequentialLR(o, [s.StepLR(optimizer_of(torch), 3)], []); s.ChainedScheduler([])
    s.ChainedScheduler([s.StepLR(o, 3), s.ReduceLROnPlateau(o)])
    s.ChainedScheduler([s.StepLR(o, 3), s.StepLR(optimizer_of(torch), 3)]); s.ReduceLROnPlateau(o, factor=1.0)
    s.ReduceLROnPlateau(3); s.ReduceLROnPlateau(o, min_lr=[0.1]); s.ReduceLROnPlateau(o, mode="mean")
    s.ReduceLROnPlateau(o, threshold_mode="mean"); s.CyclicLR(3, 0.1, 0.2); s.CyclicLR(o, [0.1], 0.2)
    s.CyclicLR(o, 0.1, 0.2, mode="square")
    s.CyclicLR(torch.optim.Adagrad([torch.ones(2, requires_grad=True)]), 0.1, 0.2); s.CosineAnnealingWarmRestarts(o, 0)
    s.CosineAnnealingWarmRestarts(o, 2.5); s.CosineAnnealingWarmRestarts(o, 2, 0)
    s.CosineAnnealingWarmRestarts(o, 2, eta_min="0"); s.OneCycleLR(3, 0.1, 10); s.OneCycleLR(o, 0.1)
    s.OneCycleLR(o, 0.1, 0); s.OneCycleLR(o, 0.1, epochs=1, steps_per_epoch=-1); s.OneCycleLR(o, 0.1, 10, pct_start=2.0)
    s.OneCycleLR(o, 0.1, 10, anneal_strategy="steep")
    s.OneCycleLR(torch.optim.Rprop([torch.ones(2, requires_grad=True)]), 0.1, 10)
    [s.OneCycleLR(o, 0.1, 1).step() for _ in range(3)]; torch.optim.swa_utils.SWALR(o, [0.1])
    torch.optim.swa_utils.SWALR(o, 0.1, -1); torch.optim.swa_utils.SWALR(o, 0.1, anneal_strategy="steep")
""", {"optimizer_of": optimizer_of}, "s", "o")  # fmt: skip


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_bad_arguments(call):
    same_as_pytorch(lambda t: call(t, schedulers(t), optimizer_of(t, momentum=0.9)) and None)


@compared
def test_the_end_of_one_cycle(t):
    optimizer = optimizer_of(t, momentum=0.9)
    scheduler = schedulers(t).OneCycleLR(optimizer, 0.1, 5)
    for _ in range(7):
        optimizer.step()
        scheduler.step()


def text_of_warnings(program, library):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(library)
    return [(w.category.__name__, str(w.message)) for w in caught]


def steps_first(t):
    scheduler = schedulers(t).StepLR(optimizer_of(t), 3)
    scheduler.step()
    scheduler.step()


def steps_in_order(t):
    optimizer = optimizer_of(t)
    scheduler = schedulers(t).StepLR(optimizer, 3)
    optimizer.step()
    scheduler.step()


def overrides_the_step(t):
    optimizer = optimizer_of(t)
    scheduler = schedulers(t).StepLR(optimizer, 3)
    optimizer.step = lambda: None
    optimizer.step()
    scheduler.step()


def asks_for_the_rate(t):
    optimizer = optimizer_of(t)
    schedulers(t).StepLR(optimizer, 3).get_lr()
    t.optim.swa_utils.SWALR(optimizer, 0.1).get_lr()


@pytest.mark.parametrize("program", [steps_first, steps_in_order, overrides_the_step, asks_for_the_rate])
@compared
def test_warnings_are_word_for_word(t, program):
    return text_of_warnings(program, t)


@needs_oracle
def test_epochs_are_deprecated():
    def program(t):
        optimizer = optimizer_of(t)
        scheduler = schedulers(t).StepLR(optimizer, 3)
        optimizer.step()
        scheduler.step(4)
        schedulers(t).ReduceLROnPlateau(optimizer).step(1.0, 5)

    ours, theirs = (text_of_warnings(program, t) for t in (tinytorch, torch))
    assert len(ours) == len(theirs) == 2
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0] == other[0] and other[1].startswith(mine[1])


def test_a_scheduler_does_not_keep_the_optimizer_of_a_wrapped_step():
    """The step that notes its calls holds a weak reference: no cycle."""
    import gc
    import weakref

    gc.disable()
    try:
        optimizer = optimizer_of(tinytorch)
        scheduler = schedulers(tinytorch).StepLR(optimizer, 3)
        gone = weakref.ref(optimizer)
        del scheduler, optimizer
        assert gone() is None
    finally:
        gc.enable()


@compared(rtol=0, atol=0)
def test_user_schedulers(t):
    class Warmup(schedulers(t)._LRScheduler):
        def __init__(self, optimizer, steps, last_epoch=-1):
            self.steps = steps
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [base * min(1, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]

    optimizer = optimizer_of(t)
    scheduler = Warmup(optimizer, 4)
    path = []
    for _ in range(6):
        optimizer.step()
        scheduler.step()
        path.append(scheduler.get_last_lr())
    return path, plain(scheduler.state_dict())


@needs_oracle
def test_outcomes_differ_where_programs_do():
    """The comparison of this file sees a rate that is off by one bit."""
    ours, _ = outcome(lambda t: 0.1 + 0.2, tinytorch)
    with pytest.raises(AssertionError):
        same_as_pytorch(lambda t: ours if t is torch else 0.3, rtol=0, atol=0)
