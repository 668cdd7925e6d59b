"""Errors keep PyTorch's class and words; notes say where they happened, and tracebacks end at the user's line."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import nn
from tinytorch.core.notes import Note, annotate
from tinytorch.inspect.mistakes import explaining
from tinytorch.utils.checkpoint import checkpoint


def failed(function, *args):
    """Return the error that a call raises, and its notes."""
    try:
        function(*args)
    except Exception as error:
        return error, [note.strip() for note in getattr(error, "__notes__", [])]
    raise AssertionError("no error")


def files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def ends_here(error):
    return files(error)[-1] == __file__ and not any("/tinytorch/" in name for name in files(error))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU())
        self.classifier = nn.Sequential(nn.Linear(100, 16), nn.ReLU())

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


IMAGES = torch.zeros(2, 1, 9, 9)


def test_the_layer_its_input_the_line_and_the_remedy():
    error, notes = failed(Net(), IMAGES)
    assert type(error) is RuntimeError
    assert str(error) == "mat1 and mat2 shapes cannot be multiplied (2x392 and 100x16)"
    line = Net.__init__.__code__.co_firstlineno + 3
    assert notes == [
        f"in classifier.0: Linear(in_features=100, out_features=16, bias=True), made at {__file__}:{line}",
        "given input: float32 [2, 392]",
        f"at {__file__}:{line + 3}: return self.classifier(self.features(x).flatten(1))",
        "remedy: nn.Linear(392, 16)",
    ]
    assert ends_here(error)
    assert files(error) == [__file__, __file__]


def test_the_full_traceback(monkeypatch):
    monkeypatch.setenv("TINYTORCH_TRACEBACK", "full")
    error, notes = failed(Net(), IMAGES)
    assert files(error)[-1].endswith("kernels/products.py")
    assert notes[-1] == "remedy: nn.Linear(392, 16)"


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.zeros(3) + torch.zeros(4),
        lambda: torch.zeros(3).add_(torch.zeros(4)),
        lambda: torch.add(torch.zeros(3), torch.zeros(4)),
        lambda: torch.zeros(3, 2) @ torch.zeros(3, 2),
        lambda: torch.zeros(3) ** torch.zeros(4),
        lambda: torch.zeros(3) > torch.zeros(4),
        lambda: torch.zeros(3)[3],
        lambda: torch.zeros(3).view(4),
        lambda: torch.zeros(3).item(),
        lambda: torch.zeros(3).sum(4),
        lambda: torch.zeros(3).backward(),
        lambda: torch.cat([torch.zeros(3, 2), torch.zeros(4, 5)]),
        lambda: F.cross_entropy(torch.zeros(3, 2), torch.zeros(3)),
        lambda: F.relu("x"),
        lambda: torch.optim.Adam(Net()),
        lambda: nn.Parameter(np.zeros(2)),
        lambda: torch.utils.data.TensorDataset(np.zeros(2), torch.zeros(2)),
        lambda: torch.utils.data.DataLoader(zip(), shuffle=True),
        lambda: f"{torch.zeros(3):.2f}",
        lambda: torch.zeros(3).shape[1],
        lambda: nn.Linear(2, 3)(torch.zeros(3)),
        lambda: torch.func.vmap(nn.Linear(2, 3))(torch.zeros(4, 3)),
        lambda: torch.func.grad(lambda x: (x @ torch.zeros(4)).sum())(torch.zeros(3)),
        lambda: checkpoint(nn.Linear(2, 3), torch.zeros(4, 3), use_reentrant=False),
    ],
)
def test_tracebacks_end_at_the_users_line(function):
    error, notes = failed(function)
    annotate(error)  # as for an error that nobody catches
    notes = [note.strip() for note in error.__notes__]
    assert ends_here(error)
    assert sum(note.startswith("at ") for note in notes) == 1


def test_an_error_in_another_library_ends_at_the_users_line():
    axes, layer = pytest.importorskip("matplotlib.figure").Figure().subplots(), nn.Linear(2, 2)

    def plot():
        axes.imshow(layer.weight)

    error, notes = failed(plot)
    annotate(error)
    assert ends_here(error) and not any("matplotlib" in each for each in (*files(error), *notes))
    assert notes[-1] == "remedy: axes.imshow(layer.weight.detach())"


def test_what_the_user_asserts_is_shown_and_not_edited():
    class Checked(nn.Module):
        def forward(self, x):
            assert x.sum().item() == 8
            return x

    _, notes = failed(Checked(), torch.zeros(2))
    assert notes[-1] == "x.sum().item() is 0.0"


def test_what_was_called_and_its_arguments():
    _, notes = failed(lambda: torch.zeros(3).sum(axes=1))
    assert notes[0] == "calling sum(input=float32 [3], axes=1)"
    assert "its arguments: sum(input, dim=None, keepdim=False, *, dtype=None)" in notes
    assert notes[-1] == "remedy: torch.zeros(3).sum(dim=1)"
    assert failed(lambda: torch.zeros(3).cumsum())[1][0] == "calling cumsum(input=float32 [3])"
    error, _ = failed(lambda: np.mean(torch.zeros(3)))
    annotate(error)
    assert error.__notes__[-1] == "  remedy: torch.mean(torch.zeros(3))"
    assert not any("arguments" in note for note in error.__notes__)
    _, notes = failed(lambda: torch.cat([torch.zeros(3, 2), torch.zeros(4, 5)], dim=-2))
    assert notes[0] == "calling cat(tensors=[float32 [3, 2], float32 [4, 5]], dim=-2)"
    _, notes = failed(lambda: nn.Linear(2, 3)(torch.zeros(3), 1))
    assert "its arguments: Linear(input)" in notes


def test_notes_are_added_once():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Net(), Net()])

        def forward(self, x):
            for block in self.blocks:
                try:
                    block(x)
                except RuntimeError:
                    raise
            return x

    error, notes = failed(Outer(), IMAGES)
    assert notes[0].startswith("in blocks.0.classifier.0: Linear(")
    assert sum(note.startswith("in ") for note in notes) == 1
    assert ends_here(error)
    before = list(error.__notes__)

    def again():
        raise error

    failed(nn.Sequential(nn.Identity()).register_forward_hook(lambda *_: again()) and again)
    assert error.__notes__ == before
    model = nn.Sequential(nn.Identity())
    model[0].register_forward_hook(lambda *_: again())
    failed(model, torch.zeros(1))
    assert error.__notes__ == before


def test_an_error_of_the_users_keeps_its_class_and_words_and_gets_the_module():
    class Strange(Exception):
        pass

    class Block(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.kind = kind

        def forward(self, x):
            raise self.kind("no")

    error, notes = failed(nn.Sequential(nn.Identity(), Block(KeyError)), torch.zeros(2))
    assert type(error) is KeyError and error.args == ("no",)
    assert notes[0].startswith("in 1: Block()") and notes[1] == "given x: float32 [2]"
    assert len(notes) == 2
    assert ends_here(error)
    error, notes = failed(nn.Sequential(Block(Strange)), torch.zeros(2))
    assert notes == []  # a program may control its flow by it


def test_nothing_is_kept_alive():
    def use():
        x = torch.zeros(2, 3)
        model = nn.Sequential(nn.Linear(4, 4))
        try:
            model(x)
        except RuntimeError as error:
            caught = error.with_traceback(None)
        gone = weakref.ref(x), weakref.ref(model)
        del x, model
        gc.collect()
        assert gone[0]() is None and gone[1]() is None  # (Python's copy of the variables of this frame would keep them)
        return caught

    error = use()
    assert error.__notes__
    assert all(type(note) is Note for note in error.__notes__)


def test_variables_can_be_changed_after_an_error():
    x, total = torch.zeros(3), 0
    for k in range(3):
        try:
            x + torch.zeros(4)
        except RuntimeError:
            total += k
    assert total == 3 and x.shape == (3,)


def test_notes_survive_pickling_as_texts():
    error, _ = failed(Net(), IMAGES)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is RuntimeError and str(again) == str(error)
    assert [type(note) for note in again.__notes__] == [str] * len(error.__notes__)
    assert again.__notes__ == error.__notes__


def test_many_errors_at_a_place_are_how_the_program_works():
    def try_it():
        try:
            torch.zeros(3).view(4)
        except RuntimeError as error:
            return error

    errors = [try_it() for _ in range(explaining.USUAL + 1)]
    assert errors[0].__notes__ and not hasattr(errors[-1], "__notes__")
    annotate(errors[-1])  # nobody has caught it
    assert errors[-1].__notes__


def test_a_fault_inside_of_the_package_shows_all_frames(monkeypatch):
    def broken(self, x):
        return None + x

    monkeypatch.setattr(nn.Linear, "forward", broken)
    broken.__code__ = broken.__code__.replace(co_filename=nn.__file__)
    error, notes = failed(nn.Sequential(nn.Linear(2, 2)), torch.zeros(2))
    assert type(error) is TypeError
    assert files(error)[-1] == nn.__file__ and len(files(error)) > 3
    assert notes[0].startswith("in 0: Linear(")


def test_a_module_that_cannot_be_shown_does_no_harm():
    class Odd(nn.Module):
        def extra_repr(self):
            raise ValueError("no")

        def forward(self, x):
            return x + torch.zeros(7)

    error, notes = failed(Odd(), torch.zeros(3))
    assert type(error) is RuntimeError
    assert notes[0].startswith("in Odd")


def test_compiled_functions():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            return self.fc(x * 2)

    model = torch.compile(Block())
    model(torch.zeros(3, 4))
    _, notes = failed(model, torch.zeros(3, 5))
    assert notes[0].startswith("in fc: Linear(")
    assert notes[-1] == "remedy: nn.Linear(5, 2)"
    assert sum(note.startswith("at ") for note in notes) == 1


def test_a_worker_of_a_loader():
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return nn.Sequential(nn.Linear(4, 2))(torch.zeros(5))

    error, _ = failed(lambda: list(torch.utils.data.DataLoader(Data(), num_workers=1)))
    assert type(error) is RuntimeError
    assert "in 0: Linear(in_features=4" in str(error) and "remedy: nn.Linear(5, 2)" in str(error)


PROGRAM = """
import {0}
import tinytorch as torch
from tinytorch import nn

def train():
    loss = nn.CrossEntropyLoss(torch.zeros(4, 3), torch.zeros(4).long())

{1}
"""


@pytest.mark.parametrize(
    ("module", "call"), [("sys", "train()"), ("threading", "t = threading.Thread(target=train); t.start(); t.join()")]
)
def test_errors_that_nobody_catches(tmp_path, module, call):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(module, call), "utf-8")
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    lines = run.stderr.splitlines()
    assert "  remedy: nn.CrossEntropyLoss()(torch.zeros(4, 3), torch.zeros(4).long())" in lines
    assert not any("/tinytorch/" in line for line in lines if line.startswith("  File"))


def test_an_exception_hook_of_the_program_gets_the_notes(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        "import sys\n"
        "sys.excepthook = lambda kind, error, trace: print(kind.__name__, error.__notes__[-1], trace.tb_next)\n"
        "import tinytorch as torch\n"
        "torch.tensor([torch.zeros(2), torch.zeros(2)])\n",
        "utf-8",
    )
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert run.stdout == "ValueError   remedy: torch.stack([torch.zeros(2), torch.zeros(2)]) None\n"


def test_threads_do_not_disturb_each_other():
    found = []

    def work():
        for _ in range(10):
            found.append(failed(Net(), IMAGES)[1][0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 40 and all(note.startswith("in classifier.0: Linear(") for note in found)


# The graph ------------------------------------------------------------------------------------------


def test_anomaly_mode_names_the_forward_line_and_the_line_that_wrote():
    def run():
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        z = (y * 2).sum()
        y += 1
        z.backward()

    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="Error detected in ExpBackward0"):
        error, notes = failed(run)
    assert "has been modified by an inplace operation" in str(error)
    line = run.__code__.co_firstlineno
    told = next(note for note in notes if "is written in place" in note)
    assert f"y is written in place at {__file__}:{line + 4}: y += 1" in told
    assert f"ExpBackward0 was recorded at {__file__}:{line + 2}: y = x.exp()" in told
    assert notes[-1] == f"remedy at {__file__}:{line + 4}: y = y + 1"


def test_where_the_graph_was_cut_in_a_module():
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x):
            h = self.fc(x)
            return h.argmax(1).float()

    def train():
        model = Cut()
        out = model(torch.zeros(4, 3))
        loss = out.mean()
        loss.backward()

    _, notes = failed(train)
    line = Cut.forward.__code__.co_firstlineno + 2
    assert f"the graph was cut: argmax() has no gradient ({__file__}:{line})" in notes


def test_parameters_that_were_not_used():
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "spare": nn.Linear(2, 1)})

    def train():
        loss = model["used"](torch.ones(1, 2)).sum()
        torch.autograd.grad(loss, list(model.parameters()))

    model_ = model  # a variable of a function that has not returned
    _, notes = failed(train)
    assert model_ is model
    assert "not used: spare.weight, spare.bias" in notes


def test_anomaly_mode_names_a_write_in_a_function_that_has_returned():
    def grow(x):
        x.mul_(2)

    def forward(x):
        y = x.exp()
        grow(y)
        return y

    def run():
        x = torch.ones(3, requires_grad=True)
        forward(x).sum().backward()

    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="Error detected in ExpBackward0"):
        _, notes = failed(run)
    written, recorded = grow.__code__.co_firstlineno + 1, forward.__code__.co_firstlineno + 1
    told = next(note for note in notes if "recorded at" in note)
    assert f"it was last written at {__file__}:{written}: x.mul_(2)" in told
    assert f"ExpBackward0 was recorded at {__file__}:{recorded}: y = x.exp()" in told


def test_doctests_see_the_message_last():
    error, notes = failed(lambda: exec(compile("torch.zeros(2) + torch.zeros(3)", "<doctest x[0]>", "exec"), globals()))
    assert type(error) is RuntimeError and notes == []


def test_notebooks_show_the_notes(tmp_path):
    folder = tmp_path / "ipykernel_21"
    folder.mkdir()
    (folder / "IPython.py").write_text(
        "class Shell:\n"
        "    class compile:\n"
        "        format_code_name = lambda name: ('Cell', 'In[3]')\n"
        "    custom_exceptions = ()\n"
        "    def set_custom_exc(self, classes, handler):\n"
        "        self.custom_exceptions, self.handler = classes, handler\n"
        "    def showtraceback(self, error, tb_offset=None):\n"
        "        print(error[0].__name__, *error[1].__notes__[-2:], error[2].tb_next, tb_offset)\n"
        "shell = Shell()\n"
        "get_ipython = lambda: shell\n",
        "utf-8",
    )
    program = folder / "3188.py"
    program.write_text(
        "import sys\n"
        "from IPython import shell\n"
        "import tinytorch as torch\n"
        "assert shell.custom_exceptions == (Exception,)\n"
        "try:\n"
        "    torch.tensor([torch.zeros(2), torch.zeros(2)])\n"
        "except ValueError as error:\n"
        "    shell.handler(shell, type(error), error, error.__traceback__, tb_offset=1)\n",
        "utf-8",
    )
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    call = "torch.tensor([torch.zeros(2), torch.zeros(2)])"
    told = f"at Cell In[3]:6: {call}   remedy: {call.replace('tensor', 'stack', 1)}"
    assert run.stdout == f"ValueError   {told} None 1\n", run.stderr


def test_what_only_looks_a_name_up_calls_nothing():
    error, _ = failed(lambda: nn.Conv2D(1, 2, 3))
    annotate(error)
    assert error.__notes__[-1] == "  remedy: nn.Conv2d"
    assert not any("calling" in note for note in error.__notes__)


def test_parameters_of_modules_of_programs_keep_their_names():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x

    _, notes = failed(lambda: Net()(1, 2))
    assert "its arguments: Net(x)" in notes
