"""Prints each pod of a stream of manifests as a Pod, so that any kind can be checked by its pods' schema.

    templates.py [--old] < MANIFESTS

`--old` leaves out pods with an image as a volume, which Kubernetes before 1.31 does not know. The parser is
another one than that of `paceline inject`.
"""

import json
import sys

import yaml


def pods(value):
    """The pods in a value: mappings with the specification of containers."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield value
        for one in value.values():
            yield from pods(one)
    elif isinstance(value, list):
        for one in value:
            yield from pods(one)


def is_new(template):
    """Whether a pod has an image as a volume."""
    return any("image" in volume for volume in template["spec"].get("volumes") or [])


def pod(template, number):
    """A pod template as a pod."""
    metadata = {"name": f"pod-{number}", **template.get("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def main():
    found = [one for document in yaml.safe_load_all(sys.stdin) for one in pods(document)]
    if "--old" in sys.argv[1:]:
        found = [one for one in found if not is_new(one)]
    print("\n---\n".join(json.dumps(pod(one, number)) for number, one in enumerate(found)))


main()
