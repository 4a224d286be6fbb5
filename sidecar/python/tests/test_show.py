"""What `paceline.show` prints, and what it displays in a notebook."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional
from unittest import mock

from stub import HISTORY, PROGRESS, Stub, needs, until

import paceline
from paceline import _history, _picture, _show, _words
from paceline._address import parse

SVG = "image/svg+xml"


@contextlib.contextmanager
def notebook(**environment: str) -> Iterator[list[dict[str, Any]]]:
    """IPython's module with a kernel; yields what is displayed."""
    shown: list[dict[str, Any]] = []

    def publish(data: dict[str, str], **options: Any) -> None:
        shown.append({"data": data, **options})

    shell = types.SimpleNamespace(kernel=object())
    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    display: Any = types.ModuleType("IPython.display")
    display.publish_display_data = publish
    modules = {"IPython": ipython, "IPython.display": display}
    # Where the tests run may itself be a container or behind SSH.
    here = {name: "" for name in (*_show.REMOTE, *_show.EMBEDDED)}
    exists = os.path.exists
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules, modules))
        stack.enter_context(mock.patch.dict(os.environ, {**here, **environment}))
        stack.enter_context(
            mock.patch("os.path.exists", lambda path: path not in _show.MARKS and exists(path))
        )
        stack.enter_context(mock.patch.object(_show, "REFRESH", 0.01))
        yield shown


def printed(*arguments: Any) -> tuple[str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as error:
            paceline.show(*arguments)
    return out.getvalue(), error.getvalue()


def served(stub: Stub, state: str = "running") -> None:
    stub.answers["/v1/history"] = HISTORY
    stub.answers["/v1/progress"] = {**PROGRESS, "state": state}


class Text(unittest.TestCase):
    def test_outside_a_notebook_a_line_and_the_address_are_printed(self) -> None:
        with Stub() as stub:
            served(stub)
            out, error = printed(stub.address)
        self.assertEqual(
            out,
            "vae <b>&: running, step 30 of 120 (25 %), loss 0.25, best 0.2, validation 0.5, "
            f"40 ms a batch, 90 s left\nhttp://{stub.address}/\n",
        )
        self.assertEqual(error, "")

    def test_job_that_does_not_answer_is_named_and_not_raised(self) -> None:
        with Stub() as stub:
            gone = stub.address
        out, error = printed(gone)
        self.assertEqual(out, "")
        self.assertTrue(error.startswith(f"paceline: cannot read /v1/progress of http://{gone}/: "))

    def test_file_is_shown_as_a_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            status, past = Path(folder) / "status.json", Path(folder) / "past.json"
            status.write_text(json.dumps(PROGRESS))
            past.write_text(json.dumps(HISTORY))
            self.assertIn("vae <b>&: running, step 30 of 120", printed(status)[0])
            self.assertEqual(
                printed(past)[0],
                "past.json: recorded, step 30, loss 0.25, validation 0.5, 40 ms a batch\n",
            )

    def test_trouble_is_named(self) -> None:
        progress = copy.deepcopy(PROGRESS)
        progress["signals"] = {"activity": "stalled", "health": "diverging"}
        self.assertEqual(_words.state(progress), "stalled, loss diverging")
        self.assertEqual(_words.facts({}), ["no report yet"])

    def test_durations_and_numbers_are_short(self) -> None:
        for value, text in (
            (0.00035, "350 µs"), (0.041, "41 ms"), (2.5, "2.5 s"), (720, "12 min"),
            (11_100, "3 h 5 min"), (187_200, "2 d 4 h"), (7190, "2 h 0 min"),
        ):  # fmt: skip
            self.assertEqual(_words.seconds(value), text)
        self.assertEqual(_words.number(123456.0), "123,456")
        self.assertEqual(_words.number(1e-7), "1e-07")
        self.assertEqual(_words.number(float("nan")), "nan")


class Frame(unittest.TestCase):
    def test_page_is_framed_where_the_browser_reaches_it(self) -> None:
        with Stub() as stub, notebook() as shown:
            served(stub)
            paceline.show(stub.address, height=500)
        (one,) = shown
        html = one["data"]["text/html"]
        self.assertIn(f'<iframe src="http://{stub.address}/"', html)
        self.assertIn("height:500px", html)
        self.assertIn("vae &lt;b&gt;&amp;: running", html)
        self.assertNotIn("<b>", html)

    def test_picture_is_chosen_where_the_browser_is_elsewhere(self) -> None:
        local = parse("127.0.0.1:7223")
        with notebook():
            self.assertTrue(_show.is_reachable(local))
            self.assertFalse(_show.is_reachable(parse("unix:/run/job.sock")))
            self.assertFalse(_show.is_reachable(parse("10.0.0.7:7223")))
            for name in (*_show.REMOTE, *_show.EMBEDDED):
                self.assertFalse(_show.is_reachable(local, {name: "1"}), name)
            with mock.patch.dict(sys.modules, {"google.colab": types.ModuleType("colab")}):
                self.assertFalse(_show.is_reachable(local))
            with mock.patch("os.path.exists", lambda path: path == "/.dockerenv"):
                self.assertFalse(_show.is_reachable(local))


class Pictures(unittest.TestCase):
    def test_picture_is_updated_in_place_until_the_job_ends(self) -> None:
        with Stub() as stub, notebook(SSH_CONNECTION="a b") as shown:
            served(stub)
            paceline.show(stub.address)
            self.assertTrue(until(lambda: len(shown) >= 3))
            self.assertIn(SVG, shown[0]["data"])
            self.assertEqual([one["update"] for one in shown[:3]], [False, True, True])
            self.assertEqual(len({one["transient"]["display_id"] for one in shown}), 1)
            served(stub, state="finished")
            self.assertTrue(until(lambda: not _show._updates))
        self.assertIn(">finished</text>", shown[-1]["data"][SVG])

    def test_second_picture_of_a_job_stops_the_first(self) -> None:
        with Stub() as stub, notebook() as shown:
            served(stub)
            paceline.show(stub.address, picture=True)
            first = _show._updates[parse(stub.address)]
            paceline.show(stub.address, picture=True)
            second = _show._updates[parse(stub.address)]
            self.assertTrue(until(lambda: not first.is_alive()))
            self.assertTrue(second.is_alive())
            second.stopped.set()
            self.assertTrue(until(lambda: not _show._updates))
        self.assertGreaterEqual(len(shown), 2)

    def test_update_ends_when_the_job_stays_away(self) -> None:
        with mock.patch.object(_show, "MAX_SILENCE", 0.05), notebook() as shown:
            with Stub() as stub:
                served(stub)
                paceline.show(stub.address, picture=True)
            self.assertTrue(until(lambda: not _show._updates))
        self.assertGreaterEqual(len(shown), 1)

    def test_picture_without_a_past_is_named_and_not_raised(self) -> None:
        with Stub() as stub, notebook():
            served(stub)
            # As with a reporter that has no page.
            del stub.answers["/v1/history"]
            with contextlib.redirect_stderr(io.StringIO()) as error:
                paceline.show(stub.address, picture=True)
        named = f"paceline: cannot read /v1/history of http://{stub.address}/: "
        self.assertTrue(error.getvalue().startswith(named))
        self.assertEqual(_show._updates, {})

    def test_picture_without_a_past_leaves_the_one_before(self) -> None:
        with Stub() as stub, notebook():
            served(stub)
            paceline.show(stub.address, picture=True)
            first = _show._updates[parse(stub.address)]
            del stub.answers["/v1/history"]
            with contextlib.redirect_stderr(io.StringIO()):
                paceline.show(stub.address, picture=True)
            self.assertEqual(_show._updates, {parse(stub.address): first})
            self.assertFalse(first.stopped.is_set())
            first.stopped.set()
            self.assertTrue(until(lambda: not _show._updates))

    def test_unix_socket_is_shown_as_a_picture_even_if_the_page_is_asked_for(self) -> None:
        with tempfile.TemporaryDirectory() as folder, notebook() as shown:
            with Stub(os.path.join(folder, "job.sock")) as stub:
                served(stub, state="finished")
                paceline.show(stub.address, picture=False)
                self.assertTrue(until(lambda: not _show._updates))
        self.assertIn(SVG, shown[0]["data"])

    def test_file_is_one_picture(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file, notebook() as shown:
            json.dump(HISTORY, file)
            file.flush()
            paceline.show(file.name)
        (one,) = shown
        self.assertIn(SVG, one["data"])


class Drawing(unittest.TestCase):
    def draw(self, past: dict[str, Any], progress: Optional[dict[str, Any]] = None) -> Any:
        # It must be well-formed, whatever the job is called.
        svg = _picture.draw(_history.of_object(past), progress or PROGRESS)
        return ElementTree.fromstring(svg)

    def paths(self, root: Any, kind: str) -> list[str]:
        found = root.iter("{http://www.w3.org/2000/svg}path")
        return [one.get("d") for one in found if one.get("class") == kind]

    def words(self, root: Any) -> list[str]:
        return [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_text_of_the_job_is_never_markup(self) -> None:
        name = "<script>alert(1)</script>\x1b[31m\"'&\u0000"
        root = self.draw(HISTORY, {**PROGRESS, "job": name, "state": '"><x/>'})
        self.assertIn(name.replace("\x1b", " ").replace("\u0000", " "), self.words(root))
        tags = {one.tag.rpartition("}")[2] for one in root.iter()}
        self.assertEqual(tags, {"svg", "style", "rect", "text", "path", "circle"})

    def test_points_stand_where_their_values_are(self) -> None:
        root = self.draw(HISTORY)
        loss = next(path for path in self.paths(root, "a") if path.count("L") == 2)
        points = [tuple(map(float, one.split())) for one in loss[1:].split("L")]
        self.assertEqual(points[0][0], _picture.LEFT)
        self.assertEqual(points[-1][0], _picture.WIDTH - _picture.RIGHT)
        # Steps are evenly spaced, and so are the losses 1, 0.5, 0.25 in their proportion.
        self.assertAlmostEqual(points[1][0] * 2, points[0][0] + points[2][0], places=0)
        falls = (points[1][1] - points[0][1], points[2][1] - points[1][1])
        self.assertAlmostEqual(falls[0] / falls[1], 2, places=1)

    def test_long_past_is_thinned_and_keeps_its_ends(self) -> None:
        count = 2000
        past: dict[str, Any] = {name: [] for name in _history.COLUMNS}
        for index in range(count):
            for name in _history.COLUMNS:
                past[name].append(float(index))
        svg = _picture.draw(_history.of_object(past), PROGRESS)
        self.assertLess(len(svg), 100_000)
        ElementTree.fromstring(svg)

    def test_empty_and_strange_values_are_drawn(self) -> None:
        nan, huge = float("nan"), 1.7e308
        root = self.draw({"to": []}, {"state": "starting"})
        self.assertIn("no loss yet", self.words(root))
        for losses in ([5.0], [0.0, 0.0], [nan, float("inf")], [huge, -huge], [5e-324, 0.0]):
            past = {"to": [float(index) for index in range(len(losses))], "loss": losses}
            with self.subTest(losses):
                self.draw(past)

    def test_early_spike_leaves_the_chart_at_its_top(self) -> None:
        losses = [1e6] + [1.0 - index / 200 for index in range(100)]
        past = {"to": [float(index) for index in range(101)], "loss": losses}
        ticks = [word for word in self.words(self.draw(past)) if word.startswith("0.")]
        self.assertGreaterEqual(len(ticks), 3)


@needs("ipykernel", "nbclient", "nbformat")
class RealNotebook(unittest.TestCase):
    def run_cells(self, *cells: str) -> list[list[dict[str, Any]]]:
        import nbformat
        from nbclient import NotebookClient

        from stub import LIMIT, SOURCE

        first = f"import sys, os; sys.path.insert(0, {str(SOURCE)!r})"
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(cell) for cell in (first, *cells)]
        NotebookClient(book, timeout=int(LIMIT), kernel_name="python3").execute()
        return [cell.outputs for cell in book.cells[1:]]

    def test_kernel_shows_a_frame_and_a_picture_that_is_updated(self) -> None:
        with Stub() as stub:
            served(stub, state="running")
            # The job ends while the second cell runs: the output of the first must change.
            wait = (
                "import time, urllib.request\nfrom paceline import _show\n"
                f"urllib.request.urlopen(urllib.request.Request('http://{stub.address}/end', "
                "data=b'{}', method='POST')).read()\n"
                "while _show._updates: time.sleep(0.05)"
            )
            stub.ends = lambda: served(stub, state="finished")
            picture, _, frame = self.run_cells(
                f"import paceline; paceline.show('{stub.address}', picture=True)",
                wait,
                f"paceline.show('{stub.address}', picture=False)",
            )
        (shown,) = picture
        self.assertEqual(shown["output_type"], "display_data")
        self.assertIn(">finished</text>", shown["data"][SVG])
        (framed,) = frame
        self.assertIn(f"http://{stub.address}/", framed["data"]["text/html"])


if __name__ == "__main__":
    unittest.main()
