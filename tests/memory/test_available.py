"""The system's ruler: what there is to have."""

import sys
from types import SimpleNamespace

import psutil
import pytest

from dlcourse.memory import available, system

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 16 GiB, 12 of them free, whose /proc and /sys lie in a folder."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text))

    monkeypatch.delenv("MEM_LIMIT", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(system, "ROOT", tmp_path)
    monkeypatch.setattr(system, "_ulimits", list)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=16 * GIB, available=12 * GIB))
    monkeypatch.setattr(system, "resident_now", lambda: system.Resident(GIB // 4, None, None))
    return write


V2 = "25 24 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "25 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n26 24 0:24 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"


def test_without_a_limit_it_is_the_machine(machine):
    assert available() == system.Available(12 * GIB, 16 * GIB, "the machine")


def test_the_limit_of_a_service_above_binds_less_what_is_used(machine):
    group = "sys/fs/cgroup/system.slice/jupyter.service"
    machine(
        {
            "proc/self/cgroup": "0::/system.slice/jupyter.service/kernel\n",
            "proc/self/mountinfo": V2,
            f"{group}/kernel/memory.max": "max\n",
            f"{group}/kernel/memory.current": GIB // 2,
            f"{group}/memory.max": GIB,
            f"{group}/memory.current": 3 * GIB // 4,
            f"{group}/memory.stat": f"anon 5\ninactive_file {GIB // 4}\n",
            "sys/fs/cgroup/system.slice/memory.max": 8 * GIB,
            "sys/fs/cgroup/system.slice/memory.current": 7 * GIB,
        }
    )
    left = available()
    assert (left.free, left.limit) == (GIB // 2, GIB)
    assert "jupyter.service" in left.source


def test_of_several_limits_the_one_with_least_left_binds(machine):
    machine(
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/a/b/memory.max": GIB,
            "sys/fs/cgroup/a/b/memory.current": GIB // 2,
            "sys/fs/cgroup/a/memory.max": 4 * GIB,
            "sys/fs/cgroup/a/memory.current": 4 * GIB - 5,
        }
    )
    assert available().free == 5


def test_version_1_and_a_container_that_sees_its_own_group_as_the_top(machine):
    machine(
        {
            "proc/self/cgroup": "4:cpu:/docker/abc\n3:memory:/docker/abc\n",
            "proc/self/mountinfo": V1.replace("0:23 /", "0:23 /docker/abc"),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 2 * GIB,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": GIB,
            "sys/fs/cgroup/memory/memory.stat": f"total_inactive_file {GIB // 2}\n",
        }
    )
    assert (available().free, available().limit) == (3 * GIB // 2, 2 * GIB)


def test_version_1_says_no_limit_as_a_number(machine):
    machine(
        {
            "proc/self/cgroup": "3:memory:/\n",
            "proc/self/mountinfo": V1,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": 20 * GIB,
        }
    )
    assert available().source == "the machine"


@pytest.mark.parametrize(("text", "free"), [(str(GIB), 3 * GIB // 4), ("", 12 * GIB), ("much", 12 * GIB)])
def test_jupyterhubs_limit(machine, monkeypatch, text, free):
    monkeypatch.setenv("MEM_LIMIT", text)
    assert available().free == free


def test_a_group_that_uses_more_than_its_limit_has_nothing_left(machine):
    machine(
        {
            "proc/self/cgroup": "0::/a\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/a/memory.max": GIB,
            "sys/fs/cgroup/a/memory.current": GIB + 1,
        }
    )
    assert available().free == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs ulimit -v")
def test_a_limit_on_addresses_binds():
    import subprocess

    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\nfrom dlcourse.memory import available\n"
    code += "left = available(); print(left.free <= 2**33, left.limit <= 2**33 or left.source)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
