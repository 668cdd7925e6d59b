"""How many processors the process may use: by its affinity, and by the quota of its control groups (containers)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath

__all__ = ["affinity", "available", "quota"]


def available() -> int:
    """Return the number of threads that compute by default: `OMP_NUM_THREADS`, or as many as can run at a time.

    A container that may use 1.5 processors of 64 sees all 64, in its affinity, too. Threads beyond its quota would
    use it up early in each period, and then all of them would wait for the next one.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "")
    if setting.isdecimal() and int(setting):
        return int(setting)
    return min(affinity(), quota() or affinity())


def affinity() -> int:
    """Return the number of processors that the threads of this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def quota(root: str = "") -> int | None:
    """Return the number of processors, rounded up, that the control groups of Linux limit this process to, or None.

    Each group on the way to the root limits all groups in it, so the least counts. What cannot be read sets no limit.

    Args:
        root: a folder that has `proc` and `sys`, if not the root of the file system.
    """
    limits = []
    for folder, version in _groups(root):
        if version == 2:
            words = _read(f"{root}{folder}/cpu.max").split()  # "150000 100000" or "max 100000", microseconds
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # the quota is -1 where there is none
            words = [_read(f"{root}{folder}/{name}").strip() for name in names]
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
            limits.append(-(-int(words[0]) // int(words[1])))
    return min(limits, default=None)


def _groups(root: str) -> Iterator[tuple[str, int]]:
    """Yield the folders of the control groups that limit processors, and the version of their interface."""
    paths: dict[int, str] = {}
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            paths[2] = path
        elif "cpu" in controllers.split(","):
            paths[1] = path
    for line in _read(f"{root}/proc/self/mountinfo").splitlines():
        mount, _, system = line.partition(" - ")
        of_mount, of_system = mount.split(), system.split()
        if len(of_mount) < 5 or len(of_system) < 3:
            continue
        version = {"cgroup": 1, "cgroup2": 2}.get(of_system[0])
        if version not in paths or (version == 1 and "cpu" not in of_system[2].split(",")):
            continue
        # In a container the group at `top` is mounted alone, and may be what the container sees as the root.
        top, point = PurePosixPath(of_mount[3]), PurePosixPath(of_mount[4].replace("\\040", " "))
        group = PurePosixPath(paths[version])
        inside = group.relative_to(top) if group.is_relative_to(top) and ".." not in group.parts else PurePosixPath()
        for each in (inside, *inside.parents):
            yield str(point / each), version


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except (OSError, UnicodeError):
        return ""
