"""Creates the fixtures that fixtures.toml lists, each with the Python of its group.

    make.py ENVIRONMENTS FOLDER NAME…

ENVIRONMENTS holds a virtual environment for each group. The folder of a fixture is replaced as a
whole, and only after success.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from verify import problems

HERE = Path(__file__).resolve().parent
# Maximum size of a file in the repository, in bytes.
MAX_SIZE = 30_000
VERSIONS = """
import importlib.metadata, json, platform, sys
names = sys.argv[1:]
found = {name: importlib.metadata.version(name) for name in names}
print(json.dumps({"python": platform.python_version(), **found}))
"""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


def about(name: str, fixture: dict, python: Path, file: str) -> dict:
    versions = subprocess.run(
        [python, "-c", VERSIONS, *fixture["packages"]], check=True, capture_output=True, text=True
    )
    facts = {"name": name, "what": fixture["what"], "source": fixture["source"], "file": file}
    facts |= {key: fixture[key] for key in ("stream", "step") if key in fixture}
    facts |= {"command": " ".join(fixture["command"]), "versions": json.loads(versions.stdout)}
    within = fixture["within"]
    facts["within"] = {
        "train": within,
        "validation": fixture.get("within_validation", within),
        "test": within,
    }
    return facts


def make(name: str, fixture: dict, environments: Path, into: Path) -> list[str]:
    python = environments / fixture["group"] / "bin" / "python"
    script, *arguments = fixture["command"]
    with tempfile.TemporaryDirectory() as temporary:
        work, made = Path(temporary, "work"), Path(temporary, "made")
        work.mkdir()
        made.mkdir()
        environment = {**os.environ, **ENVIRONMENT}
        environment |= {"TRUTH": str(made / "truth.jsonl"), "OUTPUT": str(work)}
        stream = fixture.get("stream", "merged")
        command = [sys.executable, HERE / "capture.py", made, stream, "--"]
        command += [python, HERE / script, *arguments]
        run = subprocess.run(command, cwd=work, env=environment, capture_output=True)
        if run.returncode:
            log = (made / f"{stream}.log").read_text(errors="replace")
            return [f"exit code {run.returncode}", run.stderr.decode(errors="replace"), log]
        file = f"{stream}.log"
        if fixture["source"] != "log":
            (made / f"{stream}.log").unlink()
            (made / "arrivals.csv").unlink()
            file = fixture["file"]
            keep(work, made, file)
        facts = about(name, fixture, python, file)
        (made / "about.json").write_text(json.dumps(facts, indent=1) + "\n")
        found = problems(made) + foreign(made)
        if fixture["source"] == "tfevents":
            check = [python, HERE / "events.py", made]
            check = subprocess.run(check, env=environment, capture_output=True, text=True)
            found += [check.stdout + check.stderr] if check.returncode else []
        if not found:
            shutil.rmtree(into / name, ignore_errors=True)
            shutil.copytree(made, into / name)
        return found


def keep(work: Path, made: Path, file: str) -> None:
    """Copies the written file, or all event files with the host's name removed from theirs."""
    if file != ".":
        shutil.copy(work / file, made / file)
        return
    for path in sorted(work.rglob("events.out.tfevents.*")):
        name = re.sub(r"(tfevents\.\d+)\.[^.]+", r"\1.host", path.name)
        to = made / path.relative_to(work).with_name(name)
        to.parent.mkdir(exist_ok=True)
        shutil.copy(path, to)


def foreign(made: Path) -> list[str]:
    """Finds content that must not get into the repository."""
    found = []
    for path in filter(Path.is_file, made.rglob("*")):
        content = path.read_bytes()
        if len(content) > MAX_SIZE:
            found.append(f"{path.name} has {len(content)} bytes, more than {MAX_SIZE}")
        for place in {str(Path.home()), str(HERE), tempfile.gettempdir()}:
            if place.encode() in content:
                found.append(f"{path.name} contains a path of this machine")
    return found


def main(environments: Path, into: Path, names: list[str]) -> int:
    fixtures = tomllib.loads((HERE / "fixtures.toml").read_text())
    into.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        found = make(name, fixtures[name], environments, into)
        failed += bool(found)
        print(f"{name}: {'; '.join(found) or 'ok'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
