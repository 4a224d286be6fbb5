"""Checks what the allocator's DaemonSet may do.

    rights.py CAPABILITIES < MANIFESTS

It has these capabilities and no others, and no rights at the API server.
"""

import sys

import yaml


def main():
    wanted = set(sys.argv[1].split())
    documents = list(yaml.safe_load_all(sys.stdin))
    kinds = {one["kind"] for one in documents}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, kinds
    (account,) = (one for one in documents if one["kind"] == "ServiceAccount")
    (daemon_set,) = (one for one in documents if one["kind"] == "DaemonSet")
    pod = daemon_set["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert pod["hostPID"] is True and not pod.get("hostNetwork") and not pod.get("hostIPC")
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"]
    assert set(rights["capabilities"]["add"]) == wanted, rights["capabilities"]["add"]
    assert rights["privileged"] is False and rights["readOnlyRootFilesystem"] is True
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    paths = {one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one and one["name"] in mounted}
    assert paths == {"/run/containerd", "/sys/fs/cgroup", "/var/lib/paceline"}, paths
    if "--dry-run" in container["args"]:
        (groups,) = (one for one in container["volumeMounts"] if one["name"] == "cgroup")
        assert groups["readOnly"] is True
    labels = daemon_set["spec"]["selector"]["matchLabels"].items()
    assert labels <= daemon_set["spec"]["template"]["metadata"]["labels"].items()


main()
