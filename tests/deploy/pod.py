"""Turns a Job manifest into the pod that `podman kube play` runs, with its ConfigMap before it.

    pod.py MANIFEST JOB_IMAGE SCRIPT

podman knows no native sidecars: here they are containers beside the job, and start with it. Images
are local ones, and nothing else is changed.
"""

import json
import pathlib
import sys

import yaml


def pod(job, job_image):
    """The pod of a job."""
    template = job["spec"]["template"]
    spec = template["spec"]
    natives = [one for one in spec["initContainers"] if one.pop("restartPolicy", None) == "Always"]
    spec["initContainers"] = [one for one in spec["initContainers"] if one not in natives]
    spec["containers"] += natives
    for container in spec["initContainers"] + spec["containers"]:
        image = container["image"]
        ours = image.startswith("paceline/")
        container["image"] = f"localhost/{image}" if ours else f"localhost/{job_image}"
        container["imagePullPolicy"] = "Never"
    metadata = {**template["metadata"], "name": job["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def config_map(script):
    """What `kubectl create configmap train --from-file` makes."""
    data = {script.name: script.read_text()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train"}, "data": data}


def main():
    manifest, job_image, script = sys.argv[1:]
    job = yaml.safe_load(pathlib.Path(manifest).read_text())
    # JSON is YAML.
    print(json.dumps(config_map(pathlib.Path(script))), json.dumps(pod(job, job_image)), sep="\n---\n")


main()
