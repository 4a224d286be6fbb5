"""Hand-written loops."""

from __future__ import annotations

import unittest

from stub import LIMIT, Stub, run


class Loops(unittest.TestCase):
    def test_batches_are_timed_and_counted(self) -> None:
        program = """
import time, paceline
for epoch in range(2):
    for _ in range(2):
        with paceline.batch(epoch=epoch) as b:
            time.sleep(0.03)
            b.loss(0.5)
with paceline.batch(step=90):
    pass
with paceline.batch():
    pass
"""
        with Stub() as stub:
            run(program, stub.address)
            self.assertEqual([report["step"] for report in stub.reports], [1, 2, 3, 4, 90, 91])
            for report, epoch in zip(stub.reports, (0, 0, 1, 1)):
                self.assertEqual((report["loss"], report["epoch"]), (0.5, epoch))
                self.assertTrue(0.03 <= report["batch_seconds"] < LIMIT)
            self.assertNotIn("loss", stub.reports[-1])

    def test_error_in_a_batch_is_passed_on(self) -> None:
        program = """
import paceline
try:
    with paceline.batch() as b:
        b.loss(1)
        raise ValueError("mine")
except ValueError as error:
    print(error)
"""
        with Stub() as stub:
            self.assertEqual(run(program, stub.address).stdout, "mine\n")
            self.assertEqual(stub.reports, [])

    def test_tracked_batches_include_the_time_of_their_data(self) -> None:
        program = """
import time, paceline
def data():
    for item in range(4):
        time.sleep(0.02)
        yield item
for epoch in range(2):
    batches = paceline.track(data(), epoch=epoch)
    for item in batches:
        time.sleep(0.02)
        batches.loss(item)
"""
        with Stub() as stub:
            run(program, stub.address)
            self.assertEqual([report["step"] for report in stub.reports], list(range(1, 9)))
            self.assertEqual([report["loss"] for report in stub.reports], 2 * [0.0, 1.0, 2.0, 3.0])
            for report in stub.reports:
                self.assertTrue(0.04 <= report["batch_seconds"] < LIMIT, report)

    def test_loop_may_be_left_and_loader_attributes_remain(self) -> None:
        program = """
import paceline
class Loader(list):
    dataset = "words"
batches = paceline.track(Loader([5, 6, 7]))
assert len(batches) == 3 and batches.dataset == "words"
for item in batches:
    if item == 7:
        break
    batches.loss(item)
    if item == 6:
        break
for item in paceline.track([1]):
    break
try:
    for item in paceline.track([1]):
        raise ValueError("mine")
except ValueError as error:
    print(error)
"""
        with Stub() as stub:
            self.assertEqual(run(program, stub.address).stdout, "mine\n")
            self.assertEqual([report["loss"] for report in stub.reports], [5.0, 6.0])


if __name__ == "__main__":
    unittest.main()
