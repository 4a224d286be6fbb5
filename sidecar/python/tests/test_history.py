"""The past of a job from an endpoint, a socket and files."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from stub import HISTORY, PROGRESS, Stub, needs

import paceline
from paceline import _command, _history

# Reports, as `POST /v1/report` takes them.
REPORTS = [
    {"at": 1.0, "loss": 2.0, "batch_seconds": 0.5, "step": 1},
    {"at": 2.0, "loss": "nan", "step": 2, "epoch": 1},
    {"at": 3.0, "val_loss": 4.0},
]


class FromEndpoint(unittest.TestCase):
    def test_columns_of_the_endpoint_are_plain_lists(self) -> None:
        with Stub() as stub:
            stub.answers["/v1/history"] = HISTORY
            past = paceline.history(stub.address)
        self.assertEqual(list(past), list(_history.COLUMNS))
        self.assertEqual({len(column) for column in past.values()}, {3})
        self.assertEqual(past["loss"], [1.0, 0.5, 0.25])
        self.assertEqual(past["validation"], [None, None, 0.5])

    def test_all_forms_of_an_address_are_accepted(self) -> None:
        with Stub() as stub:
            stub.answers["/v1/history"] = HISTORY
            port = stub.address.rpartition(":")[2]
            for form in (f"http://{stub.address}/", port, int(port), f"localhost:{port}"):
                self.assertEqual(paceline.history(form)["step"], [10, 20, 30], form)
            with mock.patch.dict(os.environ, PACELINE_LISTEN=stub.address):
                self.assertEqual(paceline.history()["step"], [10, 20, 30])
            elsewhere = {"PACELINE_REPORT_TO": stub.address, "PACELINE_LISTEN": "127.0.0.1:1"}
            with mock.patch.dict(os.environ, elsewhere):
                self.assertEqual(paceline.history()["step"], [10, 20, 30])

    def test_unix_socket_is_named_by_address_or_by_path(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.sock")
            with Stub(path) as stub:
                stub.answers["/v1/history"] = HISTORY
                for form in (f"unix:{path}", path, Path(path)):
                    self.assertEqual(paceline.history(form)["step"], [10, 20, 30], form)

    def test_columns_of_other_versions_have_the_same_length(self) -> None:
        older = {"schema": 1, "to": [1.0, 2.0], "loss": [3.0, None], "later": [5.0, 6.0]}
        with Stub() as stub:
            stub.answers["/v1/history"] = older
            past = paceline.history(stub.address)
        self.assertEqual(past["batch_p99"], [None, None])
        self.assertEqual(past["later"], [5.0, 6.0])

    def test_missing_job_is_an_error_that_says_what_to_do(self) -> None:
        with Stub() as stub:
            gone = stub.address
        with self.assertRaises(ConnectionError) as failure:
            paceline.history(gone)
        text = str(failure.exception)
        self.assertIn(f"cannot read /v1/history of http://{gone}/: connection refused; ", text)
        self.assertIn("paceline-sidecar exec", text)

    def test_other_server_is_an_error_that_names_it(self) -> None:
        with Stub() as stub:
            with self.assertRaisesRegex(ConnectionError, "it has no such path"):
                paceline.history(stub.address)
            stub.answers["/v1/history"] = {"hello": 1}
            with self.assertRaisesRegex(ConnectionError, "not Paceline's JSON"):
                paceline.history(stub.address)

    def test_invalid_address_is_an_error_with_an_example(self) -> None:
        for wrong in ("nowhere", "host:", "127.0.0.1:99999", "unix:job.sock", True, None):
            with (
                self.subTest(wrong),
                self.assertRaisesRegex(ValueError, "for example 127.0.0.1:7223"),
            ):
                # `None` alone means the default, so a float stands for other types.
                paceline.history(1.5 if wrong is None else wrong)  # type: ignore[arg-type]


class FromFiles(unittest.TestCase):
    def read(self, text: str, name: str = "file") -> dict[str, list[Any]]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            Path(path).write_text(text)
            return paceline.history(path)

    def test_saved_history_is_read(self) -> None:
        past = self.read(json.dumps(HISTORY))
        self.assertEqual(past["loss"], [1.0, 0.5, 0.25])
        self.assertNotIn("started_at", past)

    def test_status_file_is_one_point(self) -> None:
        past = self.read(json.dumps(PROGRESS))
        self.assertEqual((past["to"], past["step"], past["loss"]), ([1003.5], [30], [0.25]))
        self.assertEqual((past["validation"], past["batch_p99"]), ([0.5], [0.06]))
        self.assertEqual((past["loss_smoothed"], past["loss_low"]), ([0.3], [None]))

    def test_saved_events_are_a_point_each(self) -> None:
        later = {**copy.deepcopy(PROGRESS), "now": 1004.5, "step": 31}
        text = f": hello\ndata: {json.dumps(PROGRESS)}\n\ndata: {json.dumps(later)}\n\n"
        self.assertEqual(self.read(text)["step"], [30, 31])

    def test_lines_of_reports_are_a_point_each(self) -> None:
        past = self.read("".join(json.dumps(report) + "\n" for report in REPORTS))
        self.assertEqual({len(column) for column in past.values()}, {3})
        self.assertEqual((past["to"], past["step"]), ([1.0, 2.0, 3.0], [1, 2, None]))
        self.assertEqual((past["loss"][0], past["validation"]), (2.0, [None, None, 4.0]))
        self.assertNotEqual(past["loss"][1], past["loss"][1])
        self.assertEqual(past["batch_p50"], [0.5, None, None])

    def test_line_that_was_cut_at_the_end_is_left_out(self) -> None:
        past = self.read(json.dumps(REPORTS[0]) + "\n" + json.dumps(REPORTS[2])[:9])
        self.assertEqual(past["loss"], [2.0])

    def test_invalid_content_is_an_error_that_names_the_file(self) -> None:
        for wrong, cause in (
            ('{"a": 1}', "neither a history"),
            ("[1]", "expected objects"),
            ('{"loss": 1}\n{"loss"\n{"loss": 2}\n', "line 2 is not JSON"),
            (json.dumps({**HISTORY, "loss": [1.0]}), "not equally long"),
            (json.dumps({**HISTORY, "loss": [1.0]}, indent=1), "not equally long"),
            (json.dumps(HISTORY)[:-9], "line 1 is not JSON"),
        ):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, f"cannot read .*{cause}"):
                self.read(wrong)

    def test_log_that_begins_with_a_bracket_is_replayed(self) -> None:
        replayed = '{"step":1,"loss":2.5}\n'
        for log in (
            "[2026-01-01 12:00:00][INFO] step 1 loss 2.5\n",
            "\n[rank0]: step 1 loss 2.5\n",
            "{'loss': 2.5, 'step': 1}\n",
            '{\n  "lr": 0.1\n}\nstep 1 loss 2.5\n',
        ):
            with self.subTest(log), mock.patch.object(_command, "replay", return_value=replayed):
                self.assertEqual(self.read(log)["loss"], [2.5])

    def test_missing_file_is_an_error_that_names_it(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "/nowhere/status.json"):
            paceline.history("/nowhere/status.json")


@needs("pandas")
class Pandas(unittest.TestCase):
    def test_history_is_a_table_for_pandas(self) -> None:
        import pandas

        with Stub() as stub:
            stub.answers["/v1/history"] = HISTORY
            table = pandas.DataFrame(paceline.history(stub.address))
            stub.answers["/v1/history"] = {"schema": 1, "to": []}
            empty = pandas.DataFrame(paceline.history(stub.address))
        self.assertEqual(table.shape, (3, len(_history.COLUMNS)))
        self.assertEqual(table["loss"].min(), 0.25)
        self.assertEqual(int(table["validation"].isna().sum()), 2)
        self.assertEqual(empty.shape, (0, len(_history.COLUMNS)))


if __name__ == "__main__":
    unittest.main()
