"""The default number of threads: by affinity, and by the quota of control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinytorch.kernels import blas, processors

MOUNT_1 = "30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
MEMORY_1 = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
MOUNT_2 = "29 24 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
CPU_1 = "sys/fs/cgroup/cpu,cpuacct"
CPU_2 = "sys/fs/cgroup"


def system(root: Path, cgroup: str, mounts: str, files: dict[str, str]) -> str:
    """Write a file system with control groups, and return its root."""
    for path, text in {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return str(root)


def v1(quota: int, period: int = 100_000, folder: str = "") -> dict[str, str]:
    return {f"{CPU_1}{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{CPU_1}{folder}/cpu.cfs_period_us": f"{period}\n"}


CASES = {
    "v2": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "300000 100000\n"}, 3),
    "v2, rounded up": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "150000 100000\n"}, 2),
    "v2, a part of one": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "5000 100000\n"}, 1),
    "v2, no limit": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "max 100000\n"}, None),
    "v2, the outer group limits": (
        "0::/a/b/c\n",
        MOUNT_2,
        {f"{CPU_2}/a/cpu.max": "200000 100000\n", f"{CPU_2}/a/b/cpu.max": "max 100000\n"},
        2,
    ),
    "v2, the inner group limits": (
        "0::/a/b\n",
        MOUNT_2,
        {f"{CPU_2}/a/cpu.max": "800000 100000\n", f"{CPU_2}/a/b/cpu.max": "40000 20000\n"},
        2,
    ),
    "v2, in a namespace": ("0::/\n", MOUNT_2, {f"{CPU_2}/cpu.max": "400000 100000"}, 4),
    "v2, outside of the namespace": ("0::/../x\n", MOUNT_2, {f"{CPU_2}/cpu.max": "400000 100000"}, 4),
    "v1": ("4:cpu,cpuacct:/a\n3:memory:/m\n", MEMORY_1 + MOUNT_1, v1(250_000, folder="/a"), 3),
    "v1, no limit": ("4:cpu,cpuacct:/a\n", MOUNT_1, v1(-1, folder="/a"), None),
    "v1, nested": ("4:cpuacct,cpu:/a/b\n", MOUNT_1, v1(100_000, folder="/a") | v1(-1, folder="/a/b"), 1),
    "v1, a container without a namespace": (
        "4:cpu,cpuacct:/docker/1f\n",
        MOUNT_1.replace(" / ", " /docker/1f ", 1),
        v1(200_000),
        2,
    ),
    "both": (
        "4:cpu,cpuacct:/a\n0::/s\n",
        MOUNT_1 + MOUNT_2.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified "),
        v1(200_000, folder="/a"),
        2,
    ),
    "not a number": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "what 100000\n"}, None),
    "no period": ("0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "100000 0\n"}, None),
    "empty": ("", "", {}, None),
    "garbage": ("x\n:::\n", "- \n1 2 - cgroup2\n", {}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_quota(name: str, tmp_path: Path) -> None:
    cgroup, mounts, files, expected = CASES[name]
    assert processors.quota(system(tmp_path, cgroup, mounts, files)) == expected


def test_missing_files_set_no_limit(tmp_path: Path) -> None:
    assert processors.quota(str(tmp_path)) is None
    root = system(tmp_path, "0::/a\n", MOUNT_2, {})
    (tmp_path / CPU_2 / "a" / "cpu.max").mkdir(parents=True)  # a folder cannot be read
    assert processors.quota(root) is None


@pytest.mark.parametrize(
    ("setting", "affinity", "quota", "expected"),
    [("", 8, 3, 3), ("", 2, 3, 2), ("", 8, None, 8), ("5", 2, 1, 5), ("0", 8, 4, 4), ("many", 8, None, 8)],
)
def test_available(
    setting: str, affinity: int, quota: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    monkeypatch.setattr(processors, "affinity", lambda: affinity)
    monkeypatch.setattr(processors, "quota", lambda: quota)
    assert processors.available() == expected


@pytest.mark.parametrize(("setting", "kept"), [(None, False), ("2", True)])
def test_blas_is_limited_too(setting: str | None, kept: bool, tmp_path: Path) -> None:
    """A new process, whose quota is one processor from the first import on."""
    program = f"""if True:
        import builtins
        plain = builtins.open
        def opened(path, *args, **kwargs):
            text = str(path)
            if text.startswith(("/proc/self/cgroup", "/proc/self/mountinfo", "/sys/fs/cgroup")):
                path = {str(tmp_path)!r} + text
            return plain(path, *args, **kwargs)
        builtins.open = opened
        import tinytorch
        from tinytorch.kernels import blas
        print(tinytorch.get_num_threads(), blas.threads()[1]() if blas.threads() else None)
    """
    if blas.threads() is None or processors.affinity() < 2:
        pytest.skip("there is no OpenBLAS with more than one thread")
    system(tmp_path, "0::/a\n", MOUNT_2, {f"{CPU_2}/a/cpu.max": "90000 100000\n"})
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    if setting is not None:
        environment["OPENBLAS_NUM_THREADS"] = setting
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "2" if kept else "1"]
