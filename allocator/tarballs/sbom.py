#!/usr/bin/env python3
"""Prints the software bill of materials of a program, as CycloneDX 1.5: every crate that is linked.

    sbom.py PACKAGE TARGET [--epoch SECONDS] [--static]

Crates and features are those of a build of PACKAGE for TARGET, as cargo resolves them. Crates that only run
in the compiler are not linked, and are left out. The checksums are those of Cargo.lock.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import uuid
from datetime import datetime, timezone
from typing import Any

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def cargo(*words: str) -> str:
    command = [os.environ.get("CARGO", "cargo"), *words, "--locked"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(package: str, target: str) -> set[tuple[str, str]]:
    """Names and versions of the linked crates, the package included."""
    edges = ("--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe")
    lines = cargo("tree", "--package", package, "--target", target, *edges, "--format", "{p}")
    crates = (line.split() for line in lines.splitlines() if line)
    return {(words[0], words[1].lstrip("v")) for words in crates}


def checksums(text: str) -> dict[tuple[str, str], str]:
    """The checksums of Cargo.lock. Crates of the workspace have none."""
    found = {}
    for block in text.split("[[package]]"):
        fields = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', block, re.MULTILINE))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def purl(crate: tuple[str, str]) -> str:
    name, version = crate
    return f"pkg:cargo/{name}@{version.replace('+', '%2B')}"


def component(package: dict[str, Any], sums: dict[tuple[str, str], str]) -> dict[str, Any]:
    crate = (package["name"], package["version"])
    made = {
        "type": "library",
        "bom-ref": purl(crate),
        "name": package["name"],
        "version": package["version"],
        "scope": "required",
        "purl": purl(crate),
    }
    if package["license"]:
        # Cargo once allowed a slash.
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if crate in sums:
        made["hashes"] = [{"alg": "SHA-256", "content": sums[crate]}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def c_library() -> dict[str, Any]:
    """The C library, which a static program contains."""
    name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    return {
        "type": "library",
        "bom-ref": f"pkg:generic/{name}@{version}",
        "name": name,
        "version": version,
        "scope": "required",
        "purl": f"pkg:generic/{name}@{version}",
        "licenses": [{"expression": "LGPL-2.1-or-later"}],
    }


def bill(package: str, target: str, epoch: int, static: bool) -> dict[str, Any]:
    crates = linked(package, target)
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    known = {one["id"]: (one["name"], one["version"]) for one in metadata["packages"]}
    packages = {(one["name"], one["version"]): one for one in metadata["packages"]}
    with open(os.path.join(ROOT, "Cargo.lock")) as file:
        sums = checksums(file.read())
    own = next(crate for crate in crates if crate[0] == package)
    libraries = [component(packages[crate], sums) for crate in sorted(crates - {own})]
    if static and target.endswith("linux-gnu"):
        libraries.append(c_library())
    depends = []
    for node in metadata["resolve"]["nodes"]:
        if known[node["id"]] in crates:
            normal = (
                known[dependency["pkg"]]
                for dependency in node["deps"]
                if any(kind["kind"] is None for kind in dependency["dep_kinds"])
            )
            on = sorted({purl(crate) for crate in normal if crate in crates})
            depends.append({"ref": purl(known[node["id"]]), "dependsOn": on})
    program = {**component(packages[own], sums), "type": "application"}
    del program["scope"]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": libraries,
        "dependencies": sorted(depends, key=lambda one: one["ref"]),
    }
    # The same content has the same number.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {**content, "serialNumber": f"urn:uuid:{serial}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package")
    parser.add_argument("target")
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--static", action="store_true")
    given = parser.parse_args()
    print(json.dumps(bill(given.package, given.target, given.epoch, given.static), indent=2))


if __name__ == "__main__":
    main()
