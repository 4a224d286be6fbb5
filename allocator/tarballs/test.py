#!/usr/bin/env python3
"""Checks the archives in dist/: checksums, content, and that the bills of materials name what is linked.

    test.py [DIST]
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from typing import Any

from sbom import ROOT, checksums

DIST = os.path.join(ROOT, "dist")
PROGRAMS = {"paceline": "paceline", "paceline-sidecar": "paceline-sidecar"}


def wrong_sums(folder: str) -> list[str]:
    """The files of a folder whose checksum is missing or wrong."""
    with open(os.path.join(folder, "SHA256SUMS")) as file:
        listed = dict(reversed(line.rstrip("\n").split("  ", 1)) for line in file)
    wrong = []
    for name in sorted({*os.listdir(folder), *listed} - {"SHA256SUMS"}):
        try:
            with open(os.path.join(folder, name), "rb") as file:
                known = hashlib.sha256(file.read()).hexdigest()
        except FileNotFoundError:
            known = "none"
        if listed.get(name) != known:
            wrong.append(name)
    return wrong


def named_in(program: bytes) -> set[tuple[str, str]]:
    """The crates whose source files the program names, in the places of its panics."""
    paths = rb"/registry/src/[^/\0]+/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[A-Za-z0-9.+-]*)/"
    return {(name.decode(), version.decode()) for name, version in re.findall(paths, program)}


def missing(bill: dict[str, Any], program: bytes) -> set[tuple[str, str]]:
    """The crates that the program names and its bill does not."""
    listed = {(one["name"], one["version"]) for one in bill["components"]}
    return named_in(program) - listed


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.archives = glob.glob(os.path.join(DIST, "paceline-[0-9]*-linux.tar.gz"))
        self.assertTrue(self.archives, "no archive in dist: run `make tarballs` first")

    def unpacked(self) -> list[tuple[str, str]]:
        """The folder of each archive, and its processor."""
        found = []
        for path in self.archives:
            with tarfile.open(path) as archive:
                top = os.path.basename(path)[: -len(".tar.gz")]
                for entry in archive.getmembers():
                    self.assertTrue(entry.name == top or entry.name.startswith(f"{top}/"), entry.name)
                    self.assertNotIn("..", entry.name.split("/"))
                    self.assertTrue(entry.isfile() or entry.isdir(), entry.name)
                    self.assertEqual((entry.uid, entry.gid, entry.mode & 0o022), (0, 0, 0), entry.name)
                archive.extractall(self.folder.name)
            found.append((os.path.join(self.folder.name, top), top.split("-")[-2]))
        return found

    def test_every_file_has_its_checksum(self) -> None:
        self.assertEqual(wrong_sums(DIST), [])

    def test_changed_and_unlisted_files_are_noticed(self) -> None:
        for name, content in (("good", b"a"), ("changed", b"a"), ("unlisted", b"a")):
            with open(os.path.join(self.folder.name, name), "wb") as file:
                file.write(content)
        known = hashlib.sha256(b"a").hexdigest()
        other = hashlib.sha256(b"b").hexdigest()
        with open(os.path.join(self.folder.name, "SHA256SUMS"), "w") as file:
            file.write(f"{known}  good\n{other}  changed\n{known}  absent\n")
        self.assertEqual(wrong_sums(self.folder.name), ["absent", "changed", "unlisted"])

    def test_programs_run_without_libraries(self) -> None:
        for folder, processor in self.unpacked():
            for name in PROGRAMS:
                path = os.path.join(folder, "bin", name)
                with open(path, "rb") as file:
                    content = file.read()
                self.assertEqual(content[:4], b"\x7fELF")
                # The loader of a program with libraries; the content itself is not a message.
                loaders = [name for name in (b"/lib64/ld-linux", b"/lib/ld-linux") if name in content]
                self.assertEqual(loaders, [], f"{path} is not static")
                if processor == platform.machine():
                    said = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, text=True)
                    self.assertIn(said.stdout.split()[1], os.path.basename(folder))
                man = os.path.join(folder, "share/man/man1", f"{name}.1")
                self.assertGreater(os.path.getsize(man), 1000)
            for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
                self.assertTrue(os.path.exists(os.path.join(folder, "share/doc/paceline", licence)))

    def test_bill_names_what_is_linked_with_checksums_of_the_lock_file(self) -> None:
        with open(os.path.join(ROOT, "Cargo.lock")) as file:
            lock = checksums(file.read())
        for folder, processor in self.unpacked():
            for name, package in PROGRAMS.items():
                version = os.path.basename(folder).split("-")[1]
                file_name = f"{package}-{version}-{processor}-linux.cdx.json"
                with open(os.path.join(DIST, file_name), "rb") as file:
                    text = file.read()
                with open(os.path.join(folder, "share/doc/paceline", file_name), "rb") as file:
                    self.assertEqual(file.read(), text)
                bill = json.loads(text)
                with open(os.path.join(folder, "bin", name), "rb") as file:
                    program = file.read()
                self.assertGreater(len(named_in(program)), 10, "the program names its crates")
                self.assertEqual(missing(bill, program), set(), file_name)
                self.check(bill, lock, package)
                # A bill without one of them is noticed.
                gone = sorted(named_in(program))[0]
                kept = [one for one in bill["components"] if one["name"] != gone[0]]
                self.assertIn(gone, missing({**bill, "components": kept}, program))

    def check(self, bill: dict[str, Any], lock: dict[tuple[str, str], str], package: str) -> None:
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        self.assertEqual(bill["metadata"]["component"]["name"], package)
        references = {one["bom-ref"] for one in bill["components"]}
        self.assertEqual(len(references), len(bill["components"]), "each is listed once")
        for one in bill["components"]:
            self.assertTrue(one.get("licenses"), one)
            crate = (one["name"], one["version"])
            if one["purl"].startswith("pkg:cargo/") and not one["name"].startswith("paceline-"):
                self.assertEqual(one["hashes"], [{"alg": "SHA-256", "content": lock[crate]}])
        references.add(bill["metadata"]["component"]["bom-ref"])
        for edge in bill["dependencies"]:
            self.assertLessEqual({edge["ref"], *edge["dependsOn"]}, references)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        DIST = sys.argv.pop(1)
    unittest.main()
