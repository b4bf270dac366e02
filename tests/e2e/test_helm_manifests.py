"""The Helm chart: helm and Kubernetes accept it, kustos reads its settings, and what is unsafe is refused."""

import json
import re
import tarfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kustos.client import read_properties
from kustos.gateway.listener import DRAIN_TIMEOUT_MS
from kustos.gateway.workers.pool import STOP_TIMEOUT_S
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.table import SETTINGS
from testkit.certificates import Authority
from testkit.kubernetes import CHART, HelmError, Manifest, errors, helm, of_kind, rendered
from testkit.paths import ROOT

VALUES = {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*.yaml"))}
PORTS, HOSTS, QUORUM = VALUES["ports"], VALUES["hosts"], VALUES["quorum"]
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="kustos" password="p";'
HTTP_PORT = 9404
PRE_STOP_S = 5
EVERY = pytest.mark.parametrize("name", sorted(VALUES))


def manifests(name: str, *more: str) -> list[Manifest]:
    return rendered("--values", str(VALUES[name]), *more)


def only(name: str, kind: str) -> Manifest:
    (found,) = of_kind(manifests(name), kind)
    return found


def pod(name: str) -> Any:
    return only(name, "StatefulSet")["spec"]["template"]["spec"]


def containers(name: str) -> Iterator[Any]:
    spec = pod(name)
    yield from (*spec["initContainers"], *spec["containers"])


@EVERY
def test_helm_has_no_findings(name: str) -> None:
    said = helm("lint", str(CHART), "--strict", "--values", str(VALUES[name]))
    assert "0 chart(s) failed" in said
    assert "[ERROR]" not in said
    assert "[WARNING]" not in said


@EVERY
def test_kubernetes_accepts_every_manifest(name: str) -> None:
    found = manifests(name)
    assert {each["kind"] for each in found} >= {"StatefulSet", "Service", "NetworkPolicy", "ConfigMap"}
    assert [(each["kind"], wrong) for each in found for wrong in errors(each)] == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("StatefulSet", ("spec", "template", "spec", "securityContext", "runAsNobody"), True),
        ("StatefulSet", ("spec", "replicas"), "one"),
        ("StatefulSet", ("spec", "selector"), None),
        ("NetworkPolicy", ("spec", "policyType"), ["Ingress"]),
        ("PodDisruptionBudget", ("spec", "maxUnavailable"), {}),
        ("ServiceMonitor", ("spec", "endpoint"), []),
        ("PrometheusRule", ("spec", "groups"), [{"rules": []}]),
    ],
)
def test_a_wrong_manifest_is_noticed(kind: str, path: tuple[str, ...], value: object) -> None:
    manifest = only("hosts", kind)
    holder = manifest
    for key in path[:-1]:
        holder = holder[key]
    assert errors(manifest) == []
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    assert errors(manifest) != []


@EVERY
def test_a_pod_keeps_to_the_restricted_standard(name: str) -> None:
    spec = pod(name)
    assert spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] != 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {next(iter(each.keys() - {"name"})) for each in spec["volumes"]} <= {"configMap", "secret"}
    for container in containers(name):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in security
        assert container["resources"]["limits"]["memory"]
        written = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}
        assert written == {"metadata", "audit"}
    claims = only(name, "StatefulSet")["spec"]["volumeClaimTemplates"]
    assert [each["metadata"]["name"] for each in claims] == ["metadata", "audit"]


def read(name: str, directory: Path) -> KustosSettings:
    """Return the settings as the pod's own kustos reads them, with its files below the directory."""
    etc = directory / "etc"
    holder = Authority().issue("kustos", hosts=["kafka.example.com"])
    secrets = {
        "tls/tls.key": holder.key_pem,
        "tls/tls.crt": holder.chain_pem,
        "tls/tls-combined.pem": holder.key_pem + holder.chain_pem,
        "secrets/upstream/jaas": JAAS,
        "secrets/quorum/jaas": JAAS,
        "secrets/quorum/decoy": "d" * 40,
    }
    for path, text in secrets.items():
        (etc / path).parent.mkdir(parents=True, exist_ok=True)
        (etc / path).write_text(text)
    (config,) = (
        each for each in of_kind(manifests(name), "ConfigMap") if "kustos.properties" in each["data"]
    )
    file = etc / "kustos.properties"
    file.write_text(config["data"]["kustos.properties"].replace("/etc/kustos", str(etc)))
    return settings_from(read_properties(file), {"KUSTOS_NODE_ID": "4002"})


@EVERY
def test_kustos_reads_the_settings_and_warns_of_none(name: str, tmp_path: Path) -> None:
    settings = read(name, tmp_path)
    assert settings.warnings == ()
    assert settings.node_id == 4002
    assert settings.http is not None
    assert settings.http.port == HTTP_PORT
    mounted = {each["mountPath"] for each in pod(name)["containers"][0]["volumeMounts"]}
    assert {"/var/lib/kustos", "/var/log/kustos"} <= mounted
    assert settings.metadata_directory == Path("/var/lib/kustos/metadata")
    assert settings.audit.json_directory == Path("/var/log/kustos/audit")


@EVERY
def test_service_and_policy_open_the_ports_that_kustos_binds_and_no_others(name: str, tmp_path: Path) -> None:
    (listener,) = read(name, tmp_path).listeners
    own, brokers = listener.ports
    bound = [*own, *brokers]
    shift = listener.advertised.port - listener.bind.port
    service = next(each for each in of_kind(manifests(name), "Service") if "clusterIP" not in each["spec"])
    named = {each["name"]: each["containerPort"] for each in pod(name)["containers"][0]["ports"]}
    led = [
        (each["port"], named.get(each["targetPort"], each["targetPort"])) for each in service["spec"]["ports"]
    ]
    assert led == [(port + shift, port) for port in bound]
    assert named["http"] == HTTP_PORT
    policy = only(name, "NetworkPolicy")["spec"]
    first = policy["ingress"][0]["ports"]
    assert [(each["port"], each.get("endPort", each["port"])) for each in first] == [(bound[0], bound[-1])]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    # metrics are for nobody unless the values say for whom
    assert all(each.get("from") for each in policy["ingress"][1:])


def test_brokers_have_names_or_ports(tmp_path: Path) -> None:
    (by_host,) = read("hosts", tmp_path).listeners
    assert str(by_host.broker_hosts) == "broker-$(nodeId).kafka.example.com"
    (by_port,) = read("ports", tmp_path).listeners
    assert by_port.broker_hosts is None
    assert by_port.advertised_broker_port_start == 19193


@EVERY
def test_probes_ask_what_the_node_answers(name: str) -> None:
    container = pod(name)["containers"][0]
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert asked == {
        "startup": {"path": "/health", "port": "http"},
        "liveness": {"path": "/health", "port": "http"},
        "readiness": {"path": "/ready", "port": "http"},
    }


def test_rules_and_dashboard_are_those_for_everybody() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "kustos.rules.yml").read_text())
    assert only("hosts", "PrometheusRule")["spec"] == rules
    dashboard = (ROOT / "deploy" / "grafana" / "kustos.json").read_text()
    (shown,) = (each for each in of_kind(manifests("hosts"), "ConfigMap") if "kustos.json" in each["data"])
    assert json.loads(shown["data"]["kustos.json"]) == json.loads(dashboard)
    monitor = only("hosts", "ServiceMonitor")["spec"]
    nodes = next(each for each in of_kind(manifests("hosts"), "Service") if "clusterIP" in each["spec"])
    assert monitor["selector"]["matchLabels"].items() <= nodes["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {each["name"] for each in nodes["spec"]["ports"]}


def test_a_package_has_rules_and_dashboard_in_it(tmp_path: Path) -> None:
    helm("package", str(CHART), "--destination", str(tmp_path))
    (made,) = tmp_path.glob("*.tgz")
    with tarfile.open(made) as package:
        assert all(each.isfile() for each in package.getmembers())
        member = package.extractfile("kustos/files/kustos.rules.yml")
        assert member is not None
        assert member.read() == (ROOT / "deploy" / "prometheus" / "kustos.rules.yml").read_bytes()


SECRETS = sorted(setting.name for setting in SETTINGS if setting.secret)


@pytest.mark.parametrize("key", [*SECRETS, "listener.name.clients.plain.sasl.jaas.config"])
def test_a_secret_in_clear_is_refused(key: str) -> None:
    escaped = key.replace(".", "\\.")
    for value in ("s3cret", "${file:/a}s3cret"):
        with pytest.raises(
            HelmError, match=r"would be a secret in a ConfigMap|is set by the chart"
        ) as refused:
            rendered("--values", str(PORTS), "--set-string", f"settings.{escaped}={value}")
        assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("image.repository=",), "image.repository is not set"),
        (("image.tag=",), "set image.tag or image.digest"),
        (("listener.advertised.host=",), "listener.advertised.host is not set"),
        (("tls.secret=",), "tls.secret is not set"),
        (("admin.secret.name=",), "admin.secret.name is not set"),
        ((r"settings.kustos\.upstream\.bootstrap\.servers=",), "the brokers that kustos guards"),
        (("replicas=2",), "nodes with logs of their own would have ACLs of their own"),
        ((r"settings.listeners=X://:1",), "listeners is set by the chart"),
        ((r"settings.node\.id=seven",), "node.id is set by the chart"),
        ((r"settings.kustos\.workers=4",), "settings.kustos.workers: Invalid type. Expected: string"),
        (("listner.port=1",), "listner"),
        (("listener.port=80",), "listener.port"),
        (("listener.brokerHostPattern=broker.example.com",), "brokerHostPattern"),
        (("tls.combined=../../x",), "combined"),
    ],
)
def test_what_would_not_run_or_not_be_safe_is_refused(arguments: tuple[str, ...], words: str) -> None:
    set_values = [part for each in arguments for part in ("--set", each)]
    with pytest.raises(HelmError) as refused:
        rendered("--values", str(PORTS), *set_values)
    assert words in str(refused.value)


def test_a_setting_cannot_smuggle_another_one_in(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps({"settings": {"kustos.workers": "1\nsuper.users=User:mallory"}}))
    with pytest.raises(HelmError, match=r"kustos\.workers"):
        rendered("--values", str(PORTS), "--values", str(values))


def test_the_values_alone_are_refused_with_what_is_missing() -> None:
    with pytest.raises(HelmError, match="is not set"):
        rendered()


def test_the_values_of_the_page_are_taken(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text()
    blocks = [
        textwrap.dedent(each)
        for each in re.findall(r"^ *```yaml\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    ]
    single, several = (tmp_path / "single.yaml", tmp_path / "several.yaml")
    for file, text in zip((single, several), blocks, strict=True):
        file.write_text(text)
    for values in (["--values", str(single)], ["--values", str(single), "--values", str(several)]):
        assert [wrong for each in rendered(*values) for wrong in errors(each)] == []


def seconds_to_stop(*more: str) -> int:
    (found,) = of_kind(manifests("ports", *more), "StatefulSet")
    return int(found["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])


def test_a_pod_is_not_killed_before_its_clients_have_their_answers() -> None:
    rest_s = seconds_to_stop() - DRAIN_TIMEOUT_MS // 1000
    assert rest_s >= PRE_STOP_S + STOP_TIMEOUT_S
    key = r"settings.kustos\.shutdown\.drain\.timeout\.ms"
    assert seconds_to_stop("--set-string", f"{key}=60000") == 60 + rest_s


def test_nor_is_a_service_of_systemd() -> None:
    unit = (ROOT / "deploy/systemd/kustos.service").read_text()
    (limit,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(limit) >= DRAIN_TIMEOUT_MS // 1000 + STOP_TIMEOUT_S
