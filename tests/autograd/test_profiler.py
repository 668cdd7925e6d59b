"""The profiler: counts and names as PyTorch's, times and bytes that add up, and PyTorch's table to the letter."""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import random
import threading
import time
import warnings
from types import SimpleNamespace

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch import ops
from tinytorch.autograd.profiler import _events, _name, profile, record_function
from tinytorch.autograd.profiler_util import USER, EventList, FunctionEvent, nested
from tinytorch.core.mode import local
from tinytorch.core.op import Op
from tinytorch.inspect.profiler import _Shown


def counts(prof, *names):
    found = {each.key: each.count for each in prof.key_averages()}
    return {name: found.get(name, 0) for name in names}


def parents(prof):
    return [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in prof.function_events]


def step_of_mlp(lib):
    model = lib.nn.Sequential(lib.nn.Linear(8, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    x, y = lib.randn(3, 8), lib.tensor([0, 1, 1])
    with lib.autograd.profiler.profile(profile_memory=True) as prof:
        with lib.autograd.profiler.record_function("forward"):
            loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
    return prof


class TestCounts:
    def test_a_step_of_training(self):
        evaluate = "autograd::engine::evaluate_function: "
        nodes = ["AddmmBackward0", "ReluBackward0", "torch::autograd::AccumulateGrad"]
        same_as_pytorch(
            lambda lib: counts(
                step_of_mlp(lib), "forward", "aten::linear", "aten::relu", "aten::cross_entropy_loss",
                "aten::threshold_backward", "aten::mm", *nodes[:2], *[evaluate + each for each in nodes],
            )
        )  # fmt: skip

    def test_pointwise_views_and_writes(self):
        def program(lib):
            a = lib.ones(3, 4, requires_grad=True)
            with lib.autograd.profiler.profile() as prof:
                b = (a * a).exp() * a
                c = b[0] + b.sum(0) + b.t().reshape(12)[:4].view(2, 2).flatten()
                c.mul_(c.detach()).add_(c.detach())
                c.mean().backward()
                with lib.no_grad():
                    a.zero_()
            return counts(
                prof, "aten::exp", "aten::add_", "aten::mul_", "aten::zero_", "aten::t", "aten::mean", "aten::div",
                "aten::select", "aten::slice", "MulBackward0", "ExpBackward0", "SelectBackward0", "TBackward0",
            )  # fmt: skip

        same_as_pytorch(program)

    def test_a_custom_function_and_what_it_consists_of(self):
        def program(lib):
            class Cube(lib.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x * x * x

                @staticmethod
                def backward(ctx, g):
                    (x,) = ctx.saved_tensors
                    return g * 3 * x * x

            a = lib.ones(3, requires_grad=True)
            with lib.autograd.profiler.profile() as prof:
                Cube.apply(a).sum().backward()
            inside = [
                (event.name, event.cpu_parent.name)
                for event in prof.function_events
                if event.cpu_parent and event.cpu_parent.name in ("Cube", "CubeBackward")
            ]
            return inside, counts(prof, "Cube", "CubeBackward", "aten::mul")

        same_as_pytorch(program)

    def test_flops(self):
        def program(lib):
            a, b = lib.ones(4, 5, requires_grad=True), lib.ones(5, 6)
            xs, ys = lib.ones(3, 4, 5), lib.ones(3, 5, 6)
            with lib.autograd.profiler.profile(with_flops=True) as prof:
                c = a @ b
                xs @ ys
                xs @ b
                lib.ones(2, 3, 4, 5) @ lib.ones(2, 3, 5, 6)
                b.t() @ a.t()
                lib.addmm(lib.ones(6), a, b)
                lib.baddbmm(lib.ones(3, 4, 6), xs, ys)
                lib.ones(3, 1) * lib.ones(1, 4)
                (c + c).sum().backward()
            names = [f"aten::{each}" for each in ("mm", "bmm", "addmm", "baddbmm", "mul", "add")]
            return {each.key: each.flops for each in prof.key_averages() if each.key in names}

        same_as_pytorch(program)

    def test_shapes(self):
        def program(lib):
            with lib.autograd.profiler.profile(record_shapes=True) as prof:
                for n in (2, 3, 2):
                    lib.ones(n, 4).mul(lib.ones(4))
            return [
                (each.count, each.input_shapes)
                for each in prof.key_averages(group_by_input_shape=True)
                if each.key == "aten::mul"
            ]

        same_as_pytorch(program)

    @needs_oracle
    def test_names_are_those_of_pytorch(self):
        known = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
        found = set()
        for info in pkgutil.iter_modules(ops.__path__):
            module = importlib.import_module(f"tinytorch.ops.{info.name}")
            for each in vars(module).values():
                op = getattr(each, "op", None)
                if isinstance(op, Op):
                    found.add(_name(op, op.caller))
        assert len(found) > 150
        names = {name.removeprefix("aten::") for name in found}
        assert len(names & known) > 0.75 * len(names)  # the rest are parts that PyTorch has in C++

    def test_another_thread_is_not_seen(self):
        with profile() as prof:
            other = threading.Thread(target=lambda: tinytorch.ones(2) * 2)
            other.start()
            other.join()
            tinytorch.ones(2).exp()
        assert [event.name for event in prof.function_events] == ["aten::exp"]

    def test_an_error_ends_events_and_profile(self):
        x = tinytorch.ones(2)
        with pytest.raises(RuntimeError), profile() as prof, record_function("bad"):
            x + tinytorch.ones(3)
        assert parents(prof) == [("bad", None), ("aten::add", "bad")]
        assert local.state.modes is None


class TestSums:
    def test_times_add_up(self):
        start = time.perf_counter()
        prof = step_of_mlp(tinytorch)
        wall = (time.perf_counter() - start) * 1e6
        events = prof.function_events
        for event in events:
            assert 0 <= event.self_cpu_time_total <= event.cpu_time_total
            inside = sum(child.cpu_time_total for child in event.cpu_children)
            assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside, abs=1e-3)
            for child in event.cpu_children:
                assert event.time_range.start <= child.time_range.start
                assert child.time_range.end <= event.time_range.end
                assert child.cpu_parent is event
        roots = [event for event in events if event.cpu_parent is None]
        total = sum(event.cpu_time_total for event in roots)
        assert prof.self_cpu_time_total == pytest.approx(total)
        assert 0 < total < wall
        averages = prof.key_averages()
        assert sum(each.count for each in averages) == len(events) == prof.total_average().count
        assert averages.self_cpu_time_total == pytest.approx(total)
        for each in averages:
            assert each.cpu_time == pytest.approx(each.cpu_time_total / each.count)

    def test_bytes(self):
        x = tinytorch.ones(64, 512)
        with profile(profile_memory=True) as prof, record_function("all"):
            x.relu()
            x.view(512, 64)[2:].t().detach()
            x.add_(1)
            x.topk(3)
            x.to(tinytorch.float64)
            x.contiguous()
            tinytorch.cat([x, x])
            x.gt(1)
        size = 64 * 512 * 4
        expected = {
            "aten::relu": size, "aten::add_": 0, "aten::view": 0, "aten::t": 0, "aten::topk": 64 * 3 * (4 + 8),
            "aten::to": 2 * size, "aten::cat": 2 * size, "aten::gt": size // 4,
        }  # fmt: skip
        found = {each.key: each for each in prof.key_averages()}
        for name, bytes_ in expected.items():
            assert found[name].cpu_memory_usage == found[name].self_cpu_memory_usage == bytes_, name
        whole = found["all"]
        assert whole.self_cpu_memory_usage == 0
        assert whole.cpu_memory_usage == sum(each.self_cpu_memory_usage for each in found.values())

    def test_bytes_of_a_custom_function_are_counted_once(self):
        class Twice(tinytorch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        with profile(profile_memory=True) as prof:
            Twice.apply(tinytorch.ones(5, requires_grad=True))
        twice, mul = prof.function_events
        assert (twice.cpu_memory_usage, twice.self_cpu_memory_usage) == (20, 0)
        assert (mul.cpu_memory_usage, mul.self_cpu_memory_usage) == (20, 20)


def test_times_are_in_microseconds_since_the_begin():
    records = [("step", USER, 5_000_000, 6_500_000, None), ("open", USER, 6_000_000, None, None)]
    recorder = SimpleNamespace(records=records, stopped=9_000_000, thread=1)
    spans = [(event.time_range.start, event.time_range.end) for event in _events(recorder, 4_000_000, False)]
    assert spans == [(1000, 2500), (2000, 5000)]


class TestRanges:
    def test_they_nest(self):
        def program(lib):
            record = lib.autograd.profiler.record_function

            @record("decorated")
            def inner(x):
                return x.exp()

            x = lib.ones(2)
            with lib.autograd.profiler.profile() as prof:
                with record("outer"):
                    with record("inner"):
                        inner(x)
                    inner(x)
                with record("same"), record("same"):  # PyTorch shows these as one
                    x.exp()
                first, second = record("first"), record("second")
                first.__enter__()
                second.__enter__()
                x.exp()
                first.__exit__(None, None, None)
                x.exp()
                second.__exit__(None, None, None)
            return parents(prof), [event.scope for event in prof.function_events]

        same_as_pytorch(program)

    def test_what_does_not_end_ends_with_the_profile(self):
        class Leaves(tinytorch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.exp()

            @staticmethod
            def backward(ctx, g):
                prof.__exit__()
                return g.exp()

        y = Leaves.apply(tinytorch.ones((), requires_grad=True))
        prof = profile()
        prof.__enter__()
        last = record_function("unfinished").__enter__()
        y.backward()
        last.__exit__(None, None, None)
        evaluate = "autograd::engine::evaluate_function: LeavesBackward"
        assert parents(prof) == [("unfinished", None), (evaluate, "unfinished"), ("LeavesBackward", evaluate)]
        assert len({event.time_range.end for event in prof.function_events}) == 1
        assert local.state.modes is None

    def test_what_began_before_or_outside_is_not_seen(self):
        before = record_function("before")
        with before:  # no profile at all
            pass
        before.__enter__()
        with profile() as prof:
            before.__exit__(None, None, None)
        assert len(prof.function_events) == 0

    def test_a_function_that_calls_itself(self):
        @record_function("down")
        def down(n):
            x = tinytorch.ones(1).exp()
            return x if n == 0 else down(n - 1)

        with profile() as prof:
            down(2)
        assert counts(prof, "down", "aten::exp") == {"down": 3, "aten::exp": 3}
        assert [name for name, parent in parents(prof) if parent is None] == ["down"]

    def test_errors(self):
        same_as_pytorch(lambda lib: lib.autograd.profiler.record_function(3).__enter__())
        same_as_pytorch(lambda lib: lib.autograd.profiler.record_function("a").__exit__(None, None, None))
        same_as_pytorch(lambda lib: lib.autograd.profiler.emit_nvtx().__enter__())
        with pytest.raises(NotImplementedError, match="emit_itt"):
            tinytorch.autograd.profiler.emit_itt().__enter__()
        with tinytorch.autograd.profiler.emit_nvtx(enabled=False):
            pass


def some_events(rng):
    """Return the same events, nested at random, as tinytorch's list and as PyTorch's."""
    mine, other = [], []
    rows: list[dict] = []

    def grow(start, end, depth):
        own = rng.choice([0, 0, 12, 4096, 3 << 20])
        row = {
            "name": rng.choice(["aten::mul", "aten::add", "a range of one's own", "n" * 70]),
            "start": start, "end": end, "memory": own, "flops": rng.choice([0, 300, 7_000_000]),
            "shapes": rng.choice([[], [[3, 4], []], [[k] for k in range(30)]]),
        }  # fmt: skip
        rows.append(row)
        place = start + rng.randint(0, 5)
        while depth < 4 and place < end - 2 and rng.random() < 0.7:
            stop = rng.randint(place + 1, end)
            row["memory"] += grow(place, stop, depth + 1)["memory"]
            place = stop + rng.randint(0, 3)
        row["own"] = own
        return row

    place = 0
    for _ in range(5):
        stop = place + rng.choice([20, 3_000, 2_000_000])
        grow(place, stop, 0)
        place = stop + 1
    theirs = torch.autograd.profiler_util
    for k, row in enumerate(rows):
        shared = (k, row["name"], 1, float(row["start"]), float(row["end"]))
        is_range = "range" in row["name"]
        mine.append(
            FunctionEvent(
                *shared, input_shapes=row["shapes"], cpu_memory_usage=row["own"], flops=row["flops"],
                scope=USER if is_range else 0,
            )
        )  # fmt: skip
        other.append(
            theirs.FunctionEvent(
                *shared, input_shapes=row["shapes"], cpu_memory_usage=row["memory"], flops=row["flops"], stack=[],
                overload_name="", is_user_annotation=is_range,
            )
        )  # fmt: skip
    options = {"profile_memory": rng.random() < 0.5, "with_flops": rng.random() < 0.5}
    ours = EventList(nested(mine), **options)
    theirs_list = theirs.EventList(other, **options)
    theirs_list._build_tree()
    return ours, theirs_list


@needs_oracle
class TestTable:
    @pytest.mark.parametrize("seed", range(12))
    def test_to_the_letter(self, seed):
        rng = random.Random(seed)
        ours, theirs = some_events(rng)
        assert repr(list(ours)) == repr(list(theirs))
        assert str(ours) == str(theirs)
        assert repr(ours.total_average()) == repr(theirs.total_average())
        for options in (
            {"sort_by": "self_cpu_time_total"}, {"sort_by": "cpu_memory_usage", "row_limit": 3},
            {"sort_by": "cuda_time_total", "time_unit": "ms"}, {"header": "The head", "row_limit": -1},
            {"top_level_events_only": True, "row_limit": 2, "time_unit": "s"}, {"row_limit": 0},
            {"max_name_column_width": 20, "max_shapes_column_width": 15}, {"max_name_column_width": None},
        ):  # fmt: skip
            assert ours.table(**options) == theirs.table(**options), options
            for by_shape in (False, True):
                mine, other = ours.key_averages(by_shape), theirs.key_averages(by_shape)
                assert repr(list(mine)) == repr(list(other))
                assert mine.table(**options) == other.table(**options), options

    def test_stacks(self):
        theirs = torch.autograd.profiler_util
        stacks = [["a.py(1): f", "b.py(2): g"], ["a.py(1): f", "c.py(3): " + "h" * 90], []]
        rows = [(k, "aten::mul", 1, 10.0 * k, 10.0 * k + 5 + k) for k in range(len(stacks))]  # three in a row
        ours = EventList(nested(FunctionEvent(*r, stack=s) for r, s in zip(rows, stacks, strict=True)))
        other = theirs.EventList(
            [
                theirs.FunctionEvent(*r, stack=s, input_shapes=[], overload_name="", flops=0)
                for r, s in zip(rows, stacks, strict=True)
            ]
        )
        other._build_tree()
        assert str(ours) == str(other)
        for n in (0, 1, 2):
            assert str(ours.key_averages(group_by_stack_n=n)) == str(other.key_averages(group_by_stack_n=n))

    def test_of_nothing(self):
        same_as_pytorch(
            lambda lib: (
                str(lib.autograd.profiler.EventList([])),
                repr(lib.autograd.profiler.EventList([]).total_average()),
            )
        )


class TestUse:
    def test_sorted_table_of_a_run(self):
        prof = step_of_mlp(tinytorch)
        averages = prof.key_averages()
        lines = averages.table(sort_by="count").splitlines()
        calls = [int(line.split()[-1]) for line in lines[3:-2]]
        assert calls == sorted(calls, reverse=True) and len(calls) == len(averages)
        assert lines[-1].startswith("Self CPU time total: ")
        assert "CPU Mem" in lines[1]
        assert str(prof) == prof.table() == str(prof.function_events)

    def test_errors_and_warnings(self):
        def ended(lib):
            with lib.autograd.profiler.profile() as prof:
                lib.ones(2) * 2
            return prof

        def unfinished(lib):
            prof = lib.autograd.profiler.profile()
            seen = [str(prof), repr(prof)]
            with prof:
                lib.ones(2) * 2
                seen += [str(prof), len(prof.key_averages()), prof.table(), prof.self_cpu_time_total]
            return [*seen, len(prof.key_averages()) > 0]

        same_as_pytorch(unfinished)
        same_as_pytorch(lambda lib: ended(lib).table(sort_by="speed"))
        same_as_pytorch(lambda lib: ended(lib).key_averages().table(sort_by="speed"))
        same_as_pytorch(lambda lib: ended(lib).export_stacks("never"))
        same_as_pytorch(lambda lib: ended(lib).__enter__())
        same_as_pytorch(lambda lib: ended(lib).function_events.export_stacks("never", "speed"))
        same_as_pytorch(lambda lib: lib.autograd.profiler.profile(enabled=False).__enter__())
        for options in (
            {"use_cuda": True}, {"use_device": "xpu"}, {"use_device": "abacus"}, {"use_cpu": False},
            {"use_cpu": False, "use_kineto": True}, {"post_processing_timeout_s": -1.0},
        ):  # fmt: skip
            same_as_pytorch(lambda lib, o=options: str(lib.autograd.profiler.profile(**o)))

    def test_no_two_at_once(self):
        with profile() as outer:
            with pytest.raises(RuntimeError, match="already enabled on this thread"), profile():
                pass
            tinytorch.ones(2).exp()
        assert counts(outer, "aten::exp") == {"aten::exp": 1}
        with pytest.raises(AssertionError, match="profiling results"):
            profile().export_chrome_trace("never")
        with pytest.raises(NotImplementedError, match="experimental_config"):
            profile(experimental_config=object())

    def test_off(self):
        with profile(enabled=False) as prof:
            tinytorch.ones(2).exp()
            assert local.state.modes is None
        assert prof is None

    def test_chrome_trace(self, tmp_path):
        with profile(record_shapes=True) as prof, record_function("range"):
            tinytorch.ones(2, 3).exp()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        trace = json.loads((tmp_path / "trace.json").read_text())
        assert trace["schemaVersion"] == 1 and trace["trace_id"] == prof.trace_id
        outer, inner = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        assert (outer["name"], outer["cat"]) == ("range", "user_annotation")
        assert (inner["name"], inner["cat"]) == ("aten::exp", "cpu_op")
        assert inner["args"]["Input Dims"] == [[2, 3]]
        assert outer["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]

    def test_stacks_of_a_run(self, tmp_path):
        def work():
            for _ in range(3):
                tinytorch.ones(200, 200).exp()

        with profile(with_stack=True) as prof:
            work()
        event = prof.function_events[0]
        assert event.stack[0].endswith(": work") and __file__ in event.stack[0]
        assert event.stack[1].endswith("test_stacks_of_a_run")
        (average,) = prof.key_averages(group_by_stack_n=2)
        assert average.stack == event.stack[:2]
        prof.export_stacks(str(tmp_path / "stacks"))
        last = (tmp_path / "stacks").read_text().splitlines()[-1]
        frames, spent = last.rsplit(" ", 1)
        assert frames.endswith("_work") and int(spent) > 0


def cycles(lib, schedule, steps=12):
    """Return what a profiler hands out: at which step, and how often it saw steps and ops."""
    seen = []

    def ready(prof):
        found = counts(prof, "ProfilerStep*", "aten::exp")
        names = [each.trace_name for each in prof.events() if each.scope == USER]
        seen.append((prof.step_num, found, names))

    with lib.profiler.profile(schedule=schedule, on_trace_ready=ready) as prof:
        for _ in range(steps):
            lib.ones(2).exp()
            prof.step()
    return seen


@pytest.fixture
def _warned_before(monkeypatch):
    """Both libraries warn once per process that events are cleared: as if they had."""
    monkeypatch.setattr(_Shown, "cleared", True)
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cycles(torch, torch.profiler.schedule(wait=0, warmup=1, active=1), 5)


@pytest.mark.usefixtures("_warned_before")
class TestSchedules:
    @pytest.mark.parametrize(
        "options",
        [
            {"wait": 1, "warmup": 1, "active": 2},
            {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
            {"wait": 0, "warmup": 1, "active": 1},
            {"wait": 2, "warmup": 0, "active": 3, "repeat": 1},
            {"wait": 3, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
            {"wait": 0, "warmup": 0, "active": 1},
        ],
    )
    def test_cycles(self, options):
        def program(lib):
            plan = lib.profiler.schedule(**options)
            return [plan(step).name for step in range(20)], cycles(lib, plan)

        same_as_pytorch(program)

    @pytest.mark.parametrize("word", ["RN", "NWRS", "WWRRS", "S"])
    def test_any_order(self, word):
        def program(lib):
            action = lib.profiler.ProfilerAction
            names = {"N": action.NONE, "W": action.WARMUP, "R": action.RECORD, "S": action.RECORD_AND_SAVE}
            return cycles(lib, lambda step: names[word[step % len(word)]], 7)

        same_as_pytorch(program)

    @pytest.mark.parametrize(("word", "what"), [("WN", "WARMUP followed by NONE"), ("RW", "RECORD followed by WARMUP")])
    def test_orders_that_crash_pytorch(self, word, what):
        action = tinytorch.profiler.ProfilerAction
        names = {"N": action.NONE, "W": action.WARMUP, "R": action.RECORD}
        with pytest.warns(UserWarning, match=f"Incorrect schedule: {what}"):
            seen = cycles(tinytorch, lambda step: names[word[step % 2]], 6)
        # The last step is recorded, by "RW" alone, and the end hands it out.
        assert [step for step, _, _ in seen] == ([6] if word == "RW" else [])
        assert local.state.modes is None

    @pytest.mark.parametrize(
        "options",
        [
            {"wait": -1, "warmup": 1, "active": 1}, {"wait": 1, "warmup": 1, "active": 0},
            {"wait": 1, "warmup": 1, "active": 1, "repeat": -1},
        ],
    )  # fmt: skip
    def test_wrong_arguments(self, options):
        same_as_pytorch(lambda lib: lib.profiler.schedule(**options))
        same_as_pytorch(lambda lib: lib.profiler.schedule(wait=1, warmup=1, active=1)(-1))

    def test_without_a_schedule(self):
        def program(lib):
            seen = []
            with lib.profiler.profile(on_trace_ready=lambda prof: seen.append(prof.step_num)) as p:
                lib.ones(2).exp()
                p.step()
                lib.ones(2).exp()
            again = counts(p, "aten::exp", "ProfilerStep*")
            with p:
                lib.ones(2).exp()
            kept = lib.profiler.profile(acc_events=True)
            for _ in range(3):
                with kept:
                    lib.ones(2).exp()
            return seen, again, counts(p, "aten::exp"), counts(kept, "aten::exp")

        same_as_pytorch(program)

    def test_errors(self):
        def make(*names, **options):
            return lambda lib: len(
                lib.profiler.profile(
                    activities=[getattr(lib.profiler.ProfilerActivity, n, n) for n in names], **options
                ).activities
            )

        same_as_pytorch(make())
        same_as_pytorch(make("sky"))
        same_as_pytorch(make("CPU", "sky"))
        same_as_pytorch(make("CPU", "CPU"))
        same_as_pytorch(make("CPU", "CUDA"))
        same_as_pytorch(make("CPU", use_cuda=False))

        def only(name, *more):
            def program(lib):
                wanted = [getattr(lib.profiler.ProfilerActivity, each) for each in (name, *more)]
                with lib.profiler.profile(activities=wanted) as prof:
                    lib.ones(2).exp()
                return counts(prof, "aten::exp")

            return program

        same_as_pytorch(only("CUDA"))
        same_as_pytorch(only("CPU", "CUDA"))
        for ask in ("key_averages", "events", "stop"):
            same_as_pytorch(lambda lib, a=ask: getattr(lib.profiler.profile(), a)())
        for ask in ("export_chrome_trace", "export_stacks"):
            same_as_pytorch(lambda lib, a=ask: getattr(lib.profiler.profile(), a)("never"))


def test_the_warning_that_events_are_cleared_comes_once(monkeypatch):
    monkeypatch.setattr(_Shown, "cleared", False)
    plan = tinytorch.profiler.schedule(wait=0, warmup=1, active=1)
    with pytest.warns(UserWarning, match="clears events at the end of each cycle") as caught:
        cycles(tinytorch, plan, 8)
    assert len(caught) == 1


class TestFiles:
    @pytest.mark.parametrize("zipped", [False, True])
    def test_tensorboard(self, tmp_path, zipped):
        handler = tinytorch.profiler.tensorboard_trace_handler(str(tmp_path / "logs"), "worker", use_gzip=zipped)
        plan = tinytorch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
        with tinytorch.profiler.profile(schedule=plan, on_trace_ready=handler, acc_events=True) as prof:
            prof.add_metadata("note", 'a "quoted" one')
            prof.add_metadata_json("numbers", "[1, 2]")
            for _ in range(6):
                tinytorch.ones(2).exp()
                prof.step()
        first, second = sorted((tmp_path / "logs").iterdir())
        assert first.name.startswith("worker.")
        assert first.name.endswith(".pt.trace.json.gz" if zipped else ".pt.trace.json")
        raw = second.read_bytes()
        trace = json.loads(gzip.decompress(raw) if zipped else raw)
        assert trace["note"] == 'a "quoted" one' and trace["numbers"] == [1, 2]
        names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
        assert names == ["ProfilerStep#1", "aten::exp", "ProfilerStep#3", "aten::exp"]

    def test_a_folder_that_cannot_be(self, tmp_path):
        (tmp_path / "file").touch()
        handler = tinytorch.profiler.tensorboard_trace_handler(str(tmp_path / "file" / "logs"))
        with pytest.raises(RuntimeError, match="create directory"), tinytorch.profiler.profile(on_trace_ready=handler):
            tinytorch.ones(2).exp()

    def test_left_out(self):
        with pytest.raises(NotImplementedError, match="timeline"):
            tinytorch.profiler.profile().export_memory_timeline("never")
        with pytest.raises(NotImplementedError, match="filters"):
            tinytorch.profiler.profile(activities=[{tinytorch.profiler.ProfilerActivity.CPU: []}])
