"""The number of CPUs according to the kernel's files."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import cli

V1_MOUNT = "30 23 0:26 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V2_MOUNT = "30 23 0:26 {top} /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n"


class Quota(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def group(self, mount: str, top: str, line: str) -> None:
        self.write("proc/self/mountinfo", mount.format(top=top))
        self.write("proc/self/cgroup", line)

    def v1_limit(self, folder: str, quota: int) -> None:
        self.write(f"{folder}/cpu.cfs_quota_us", f"{quota}\n")
        self.write(f"{folder}/cpu.cfs_period_us", "100000\n")

    def test_version_2_in_a_container(self) -> None:
        self.group(V2_MOUNT, "/", "0::/\n")
        self.write("sys/fs/cgroup/cpu.max", "150000 100000\n")
        self.assertEqual(cli.quota(self.root), 1.5)

    def test_the_tightest_group_rules(self) -> None:
        self.group(V2_MOUNT, "/", "0::/jobs/one\n")
        self.write("sys/fs/cgroup/jobs/cpu.max", "200000 100000\n")
        self.write("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n")
        self.assertEqual(cli.quota(self.root), 2)

    def test_version_1_in_a_container_that_sees_its_own_group_as_the_top(self) -> None:
        self.group(V1_MOUNT, "/docker/1f", "5:cpuset:/docker/1f\n4:cpu,cpuacct:/docker/1f\n")
        self.v1_limit("sys/fs/cgroup/cpu,cpuacct", 50_000)
        self.assertEqual(cli.quota(self.root), 0.5)

    def test_version_1_on_the_host(self) -> None:
        self.group(V1_MOUNT, "/", "4:cpu,cpuacct:/jobs\n")
        self.v1_limit("sys/fs/cgroup/cpu,cpuacct", -1)
        self.v1_limit("sys/fs/cgroup/cpu,cpuacct/jobs", 300_000)
        self.assertEqual(cli.quota(self.root), 3)

    def test_without_a_limit_or_without_files(self) -> None:
        self.assertEqual(cli.quota(self.root), float("inf"))
        self.group(V1_MOUNT, "/", "4:cpu,cpuacct:/\n")
        self.v1_limit("sys/fs/cgroup/cpu,cpuacct", -1)
        self.assertEqual(cli.quota(self.root), float("inf"))

    def test_threads_follow_it_and_are_never_none(self) -> None:
        with mock.patch("os.sched_getaffinity", return_value=range(8)):
            for quota, threads in [(0.5, 1), (2.9, 2), (99, 8), (float("inf"), 8)]:
                with mock.patch("cli.quota", return_value=quota):
                    self.assertEqual(cli.threads("auto"), threads)


class Flags(unittest.TestCase):
    def test_a_wrong_flag_is_one_line_and_exit_code_2(self) -> None:
        for flag in ("--steps=0", "--seed=-1", "--threads=half", "--what"):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
                cli.parser("", 64).parse_args([flag])
            self.assertEqual((end.exception.code, said.getvalue().count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
