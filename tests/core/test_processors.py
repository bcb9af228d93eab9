"""How many processors a process may use: the limits of control groups, in folders that look like /proc and /sys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crfkit import _core
from crfkit.models.checks import count_threads

V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/cpu,cpuacct"


def limit(root: Path, groups: str, files: dict[str, str]) -> int:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return _core.control_group_limit(str(root))


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, 0),
        ("0::/\n", {f"{V2}/cpu.max": "max 100000\n"}, 0),
        ("0::/\n", {f"{V2}/cpu.max": "400000 100000\n"}, 4),
        ("0::/\n", {f"{V2}/cpu.max": "250000 100000\n"}, 2),
        ("0::/\n", {f"{V2}/cpu.max": "20000 100000\n"}, 1),
        ("0::/a/b\n", {f"{V2}/a/b/cpu.max": "max 100000\n", f"{V2}/a/cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {f"{V2}/a/b/cpu.max": "200000 100000\n", f"{V2}/a/cpu.max": "300000 100000\n"}, 2),
        ("0::/not/mounted\n", {f"{V2}/cpu.max": "150000 50000\n"}, 3),
        (
            "5:memory:/m\n4:cpu,cpuacct:/c\n",
            {f"{V1}/c/cpu.cfs_quota_us": "500000\n", f"{V1}/c/cpu.cfs_period_us": "100000\n"},
            5,
        ),
        (
            "4:cpu:/c\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            0,
        ),
        (
            "4:cpu,cpuacct:/docker/x\n",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "600000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "200000",
            },
            3,
        ),
        ("4:cpuset:/c\n", {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000"}, 0),
        ("nonsense\n1:cpu\n2:cpu:relative\n", {f"{V2}/cpu.max": "nonsense"}, 0),
    ],
)
def test_the_limit_of_a_control_group(
    tmp_path: Path, groups: str, files: dict[str, str], expected: int
) -> None:
    assert limit(tmp_path, groups, files) == expected


def test_without_proc_there_is_no_limit(tmp_path: Path) -> None:
    assert _core.control_group_limit(str(tmp_path / "nowhere")) == 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_none_asks_for_the_processors_of_this_process() -> None:
    own = os.sched_getaffinity(0)
    assert 1 <= count_threads(None) <= len(own)
    try:
        os.sched_setaffinity(0, {min(own)})
        assert count_threads(None) == 1
    finally:
        os.sched_setaffinity(0, own)
