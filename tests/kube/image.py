#!/usr/bin/env python3
"""image.py OUT VERSION BUSYBOX TOY_JOB PACELINE SIDECAR: an archive with the bed's images, made without an engine.

bed/pause:1 holds the namespaces of a pod, and bed/job:1 has the toy job with its libraries and a shell.
paceline/allocator and paceline/sidecar have the programs where the project's own images have them.
"""
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile

out, version, busybox, job, paceline, sidecar = sys.argv[1:]
PAUSE = b"#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 3600 & wait $!; done\n"
ENVIRONMENT = ["PATH=/bin", "LD_LIBRARY_PATH=/lib"]


def put(archive, name, data=b"", mode=0o755, kind=tarfile.REGTYPE, link=""):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.type, entry.linkname = len(data), mode, kind, link
    archive.addfile(entry, io.BytesIO(data))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def stripped(program):
    """A program without its symbols."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, program], check=True)
        return read(file.name)


def libraries(*programs):
    found = {}
    for program in programs:
        needed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        for word in needed.split():
            if word.startswith("/"):
                found[word.lstrip("/") if "ld-linux" in word else f"lib/{word.rsplit('/')[-1]}"] = word
    return sorted(found.items())


def layer(files, *programs):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev", "run", "lib", "lib64"):
            put(archive, folder, kind=tarfile.DIRTYPE)
        for name, path in libraries(*programs):
            put(archive, name, read(path))
        files(archive)
    return raw.getvalue()


def shell(archive):
    put(archive, "bin/busybox", read(busybox))
    for name in ("sh", "sleep", "cat", "echo", "kill", "awk"):
        put(archive, f"bin/{name}", kind=tarfile.SYMTYPE, link="busybox")
    put(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", 0o644)
    put(archive, "pause", PAUSE)
    put(archive, "bin/toy-job", stripped(job))


# The sidecar's program also runs in the job's own container, which must have its libraries.
bed = layer(shell, job, sidecar)
allocator = layer(lambda archive: put(archive, "paceline", stripped(paceline)), paceline)
beside = layer(lambda archive: put(archive, "paceline-sidecar", stripped(sidecar)), sidecar)
images = (
    ("bed/pause:1", bed, {"Cmd": ["/pause"]}),
    ("bed/job:1", bed, {"Cmd": ["/bin/toy-job"]}),
    (f"paceline/allocator:{version}", allocator, {"Entrypoint": ["/paceline"]}),
    (f"paceline/sidecar:{version}", beside, {"Entrypoint": ["/paceline-sidecar"], "User": "65532:65532"}),
)
with tarfile.open(out, "w") as archive:
    manifest, layers = [], set()
    for tag, content, config in images:
        digest = hashlib.sha256(content).hexdigest()
        if digest not in layers:
            put(archive, f"{digest}.tar", content, 0o644)
            layers.add(digest)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ENVIRONMENT, **config},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
        }
        text = json.dumps(config).encode()
        name = hashlib.sha256(text).hexdigest() + ".json"
        put(archive, name, text, 0o644)
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": [f"{digest}.tar"]})
    put(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)
