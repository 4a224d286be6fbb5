"""Which reports arrive at the sidecar, and which do not."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
import unittest
from pathlib import Path

from stub import Stub, run, until


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Arriving(unittest.TestCase):
    def test_report_arrives_with_its_fields_and_time(self) -> None:
        program = "import paceline; paceline.report(loss=0.5, batch_seconds=0.04, step=7, epoch=1)"
        before = time.time()
        with Stub() as stub:
            done = run(program, stub.address)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            (report,) = stub.reports
            at = report.pop("at")
            self.assertTrue(before <= at <= time.time())
            expected = {"loss": 0.5, "batch_seconds": 0.04, "step": 7, "epoch": 1.0}
            self.assertEqual(report, expected)
            path, headers, _ = stub.requests[0]
            self.assertEqual(path, "/v1/report")
            self.assertEqual(headers["Content-Type"], "application/x-ndjson")
            self.assertRegex(headers["Host"], r"^127\.0\.0\.1:\d+$")

    def test_totals_arrive_and_zero_expected_steps_do_not(self) -> None:
        program = """
import paceline
paceline.report(total_steps=1000, expected_steps=400)
paceline.report(expected_steps=0)
paceline.report(loss=1)
"""
        with Stub() as stub:
            run(program, stub.address)
            sent = [{k: v for k, v in report.items() if k != "at"} for report in stub.reports]
            self.assertEqual(sent, [{"total_steps": 1000, "expected_steps": 400}, {"loss": 1.0}])

    def test_unix_socket_is_supported(self) -> None:
        with tempfile.TemporaryDirectory() as folder, Stub(f"{folder}/job.sock") as stub:
            run("import paceline; paceline.report(val_loss=2)", stub.address)
            self.assertEqual([report["val_loss"] for report in stub.reports], [2.0])

    def test_wildcard_address_is_reached_over_loopback(self) -> None:
        with Stub() as stub:
            port = stub.address.rpartition(":")[2]
            run("import paceline; paceline.report(loss=1)", f"0.0.0.0:{port}")
            self.assertEqual(len(stub.reports), 1)

    def test_many_reports_arrive_in_order_over_one_connection(self) -> None:
        program = """
import paceline
for step in range(2000):
    paceline.report(loss=1.0, step=step)
    if step % 500 == 0:
        assert paceline.flush(), paceline.stats()
"""
        with Stub() as stub:
            run(program, stub.address)
            self.assertEqual([report["step"] for report in stub.reports], list(range(2000)))
            self.assertGreater(len(stub.requests), 3)
            self.assertEqual(len(stub.connections), 1)

    def test_non_finite_losses_arrive_as_strings(self) -> None:
        program = """
import paceline
for loss in float("nan"), float("inf"), -float("inf"), 1:
    paceline.report(loss=loss)
"""
        with Stub() as stub:
            run(program, stub.address)
            losses = [report["loss"] for report in stub.reports]
            self.assertEqual(losses, ["nan", "inf", "-inf", 1.0])

    def test_function_is_called_in_another_thread(self) -> None:
        program = """
import threading, paceline
main = threading.get_ident()
paceline.report(loss=lambda: 5.0 if threading.get_ident() != main else -1.0)
"""
        with Stub() as stub:
            run(program, stub.address)
            self.assertEqual([report["loss"] for report in stub.reports], [5.0])

    def test_rank_is_read_from_the_environment(self) -> None:
        with Stub() as stub:
            run("import paceline; paceline.report(loss=1)", stub.address, RANK="3")
            self.assertEqual([report["rank"] for report in stub.reports], [3])

    def test_late_sidecar_gets_the_waiting_reports(self) -> None:
        program = """
import os, pathlib, time, paceline
for step in range(40):
    paceline.report(loss=1.0, step=step)
    time.sleep(0.01)
    if step == 20:
        pathlib.Path(os.environ["HALF"]).touch()
while not paceline.flush():
    time.sleep(0.05)
"""
        address = free_address()
        port = int(address.rpartition(":")[2])
        with tempfile.TemporaryDirectory() as folder:
            half = Path(folder) / "half"
            thread = threading.Thread(target=lambda: run(program, address, HALF=str(half)))
            thread.start()
            self.assertTrue(until(half.exists))
            with Stub(port=port) as stub:
                thread.join()
                self.assertEqual([report["step"] for report in stub.reports], list(range(40)))

    def test_restarted_sidecar_gets_the_reports(self) -> None:
        program = """
import time, paceline
for step in range(60):
    paceline.report(step=step, loss=1.0)
    time.sleep(0.05)
while not paceline.flush():
    time.sleep(0.05)
"""
        with Stub() as first:
            port = int(first.address.rpartition(":")[2])
            thread = threading.Thread(target=lambda: run(program, first.address))
            thread.start()
            self.assertTrue(first.wait(lambda reports: len(reports) > 5))
        with Stub(port=port) as second:
            thread.join()
            steps = {report["step"] for report in first.reports + second.reports}
            self.assertEqual(steps, set(range(60)))


class Nothing(unittest.TestCase):
    """The package does not disturb the program."""

    def test_reports_without_a_sidecar_are_quiet_and_fast(self) -> None:
        program = """
import time, paceline
# CPU time of the thread, because other processes may use the CPU meanwhile.
began = time.thread_time()
for step in range(20000):
    paceline.report(loss=1.0, step=step)
print((time.thread_time() - began) / 20000)
time.sleep(0.6)
"""
        done = run(program, free_address())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(float(done.stdout), 100e-6)

    def test_failure_is_logged_once_at_debug_level(self) -> None:
        program = """
import logging, time, paceline
logging.basicConfig(level=logging.DEBUG)
for step in range(30):
    paceline.report(loss=1.0, step=step)
    paceline.flush()
"""
        done = run(program, free_address())
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], "^DEBUG:paceline:ConnectionRefusedError: ")

    def test_reporting_can_be_disabled(self) -> None:
        for word in ("1", "true"):
            with Stub() as stub:
                program = """
import threading, paceline
paceline.report(loss=1)
with paceline.batch() as b:
    b.loss(2)
print(threading.active_count())
"""
                done = run(program, stub.address, PACELINE_DISABLED=word)
                self.assertEqual((done.stdout, done.stderr, stub.requests), ("1\n", "", []))

    def test_invalid_address_is_logged_once(self) -> None:
        program = "import paceline\nfor _ in range(3): paceline.report(loss=1)"
        for address in ("7223", "unix:job.sock", "host:0", "::1:7223"):
            done = run(program, address)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(f'invalid PACELINE_LISTEN "{address}": expected', done.stderr)

    def test_reports_go_where_exec_says_and_not_to_the_default(self) -> None:
        program = """
import paceline
paceline.report(loss=1)
paceline.flush()
print(paceline.stats().sent)
"""
        with Stub() as own, Stub() as other:
            done = run(program, other.address, PACELINE_REPORT_TO=own.address)
            self.assertEqual((done.stdout, len(own.reports), other.requests), ("1\n", 1, []))
            done = run(program, other.address, PACELINE_REPORT_TO="none")
            self.assertEqual((done.stdout, done.stderr, other.requests), ("0\n", "", []))
        done = run(program, "127.0.0.1:0", PACELINE_DISABLED="1")
        self.assertEqual((done.stdout, done.stderr), ("0\n", ""))
        done = run(program, "127.0.0.1:7223", PACELINE_REPORT_TO="7230")
        self.assertIn('invalid PACELINE_REPORT_TO "7230": expected', done.stderr)

    def test_invalid_values_are_counted_and_never_raise(self) -> None:
        program = """
import paceline
class Bad:
    def __float__(self): raise RuntimeError("no")
class Worse:
    def detach(self): raise RuntimeError("no")
def fails(): raise KeyError
for loss in Bad(), Worse(), fails, "x", [1], object():
    paceline.report(loss=loss)
paceline.report(step="a")
paceline.report(loss=1.5)
paceline.flush()
print(paceline.stats())
"""
        with Stub() as stub:
            done = run(program, stub.address)
            self.assertEqual(done.stderr, "")
            self.assertEqual([report["loss"] for report in stub.reports], [1.5])
            self.assertEqual(done.stdout, "Stats(sent=1, waiting=0, dropped=0, rejected=7)\n")

    def test_rejected_report_is_not_sent_again(self) -> None:
        with Stub() as stub:
            stub.answer = (400, b"line 1: no")
            program = """
import paceline
paceline.report(loss=1)
paceline.flush()
print(paceline.stats().rejected)
"""
            self.assertEqual(run(program, stub.address).stdout, "1\n")
            self.assertEqual(len(stub.requests), 1)

    def test_rejected_report_does_not_affect_others(self) -> None:
        program = """
import paceline
for round in range(2):
    for step in range(5):
        paceline.report(step=step, loss=1.5)
    paceline.flush()
print(paceline.stats())
"""
        with Stub() as stub:
            stub.refuses = b'"step":2'
            done = run(program, stub.address)
            self.assertEqual([report["step"] for report in stub.reports], 2 * [0, 1, 3, 4])
            self.assertEqual(done.stdout, "Stats(sent=8, waiting=0, dropped=0, rejected=2)\n")

    def test_invalid_times_and_empty_reports_are_not_sent(self) -> None:
        program = """
import paceline
for seconds in 0.0, -1.0, float("nan"), 0.5:
    paceline.report(loss=1.0, batch_seconds=seconds)
paceline.report(batch_seconds=0)
paceline.report()
paceline.report(step=-1, loss=1.0)
"""
        with Stub() as stub:
            run(program, stub.address)
            times = [report.get("batch_seconds") for report in stub.reports]
            self.assertEqual(times, [None, None, None, 0.5])


class Waiting(unittest.TestCase):
    def test_hanging_sidecar_does_not_block_and_newest_reports_stay(self) -> None:
        program = """
import time, paceline, paceline._http
# Longer than this test may take, so a call that waits for the sidecar would be noticed.
paceline._http.TIMEOUT = 3600.0
for step in range(6000):
    paceline.report(loss=1.0, step=step)
stats = paceline.stats()
print(stats.dropped, stats.waiting, stats.sent)
began = time.perf_counter()
import atexit
atexit.register(lambda: print(time.perf_counter() - began))
atexit.unregister(paceline.flush)
atexit.register(paceline.flush)
"""
        with Stub() as stub:
            stub.hold.clear()
            done = run(program, stub.address, default_flush=True)
            first, last = done.stdout.splitlines()
            dropped, waiting, sent = (int(word) for word in first.split())
            self.assertEqual(sent, 0)
            self.assertEqual(dropped + waiting, 6000)
            self.assertTrue(4096 <= waiting <= 4096 + 256, waiting)
            self.assertGreater(float(last), 0.4)
            self.assertEqual(done.returncode, 0)


class Processes(unittest.TestCase):
    def test_forked_child_of_a_reporting_process_is_silent(self) -> None:
        program = """
import os, sys, threading, paceline
paceline.report(loss=1.0, step=1)
paceline.flush()
child = os.fork()
for step in range(10):
    paceline.report(loss=2.0, step=100 if child == 0 else 2)
if child == 0:
    assert threading.active_count() == 1
    assert paceline.flush() and paceline.stats().sent == 0
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
        with Stub() as stub:
            # Newer Python versions warn about forks in programs with threads.
            done = run(program, stub.address, PYTHONWARNINGS="ignore")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([report["step"] for report in stub.reports], [1] + 10 * [2])

    def test_child_forked_before_the_first_report_reports(self) -> None:
        program = """
import os, sys, paceline
child = os.fork()
paceline.report(loss=1.0, step=1 if child == 0 else 2)
if child:
    os.waitpid(child, 0)
"""
        with Stub() as stub:
            run(program, stub.address)
            self.assertEqual(sorted(report["step"] for report in stub.reports), [1, 2])

    def test_multiprocessing_children_send_their_last_reports(self) -> None:
        program = """
import multiprocessing, paceline
def work(step): paceline.report(loss=1.0, step=step)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(step,)) for step in range(2)]
    for child in children: child.start()
    for child in children: child.join()
"""
        with Stub() as stub:
            done = run(program, stub.address)
            self.assertEqual(done.stderr, "")
            self.assertEqual(sorted(report["step"] for report in stub.reports), [0, 1])

    def test_fork_at_any_moment_is_safe(self) -> None:
        program = """
import os, paceline
for step in range(200):
    paceline.report(loss=1.0, step=step)
    child = os.fork()
    if child == 0:
        paceline.report(loss=2.0)
        paceline.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""
        with Stub() as stub:
            done = run(program, stub.address, PYTHONWARNINGS="ignore")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([report["step"] for report in stub.reports], list(range(200)))


if __name__ == "__main__":
    unittest.main()
