"""What `pip install kustos` brings is what it needs, and each extra brings what its commands need."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.utils import canonicalize_name

from kustos.acl.forms import texts_of
from kustos.cli.failures import ExitCode
from kustos.cli.pipeline.signoff import app as signoff
from kustos.extras import EXTRAS
from kustos.signoff import review_document, write_review
from testkit.installation import NAME, PROJECT, Installation, closure, requirements
from testkit.paths import ROOT
from testkit.review_documents import ACLS, WRITE_OLD, entitlement_row, keys
from testkit.review_rows import AS_OF

PAGE = ROOT / "docs" / "how-to" / "install.md"

ONLY_WITH = {
    "kustos.pipeline.bulk": "arrow",
    "kustos.cli.migrate.zookeeper_client": "zookeeper",
    "kustos.pipeline": "spark",
}
"""What cannot be imported without an extra: modules whose names begin so; the longest beginning counts."""

FOR_OTHERS = {"puresasl", "grpc", "grpc_status", "google.rpc", "zstandard", "pandas"}
"""What kazoo and PySpark import, and kustos does not."""


@cache
def imported() -> dict[str, set[str]]:
    """Return the modules of kustos that import each third-party package, at once or when it is needed."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src" / NAME).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            else:
                continue
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {NAME}:
                found.setdefault(top, set()).add(module)
    return found


def extra_needed_by(module: str) -> str:
    return ONLY_WITH[max((prefix for prefix in ONLY_WITH if module.startswith(prefix)), key=len)]


def distributions_of(modules: set[str]) -> set[str]:
    known = packages_distributions()
    return {canonicalize_name(name) for top in modules for name in known[top.partition(".")[0]]}


def names_of(extra: str = "") -> set[str]:
    """Return what is asked for by name."""
    found: set[str] = set()
    for requirement in requirements(NAME, extra):
        name = canonicalize_name(requirement.name)
        found |= {name for part in requirement.extras for name in names_of(part)} if name == NAME else {name}
    return found


def test_each_dependency_is_imported_outside_the_extras_and_nothing_else_is() -> None:
    of_extras = {module for modules in EXTRAS.values() for module in modules}
    needed = {
        top
        for top, modules in imported().items()
        if top not in of_extras and any(not module.startswith(tuple(ONLY_WITH)) for module in modules)
    }
    assert distributions_of(needed) == names_of()
    assert set(imported()) - needed <= of_extras


def test_each_extra_brings_the_modules_that_are_said_of_it_and_kustos_imports_them() -> None:
    declared = set(PROJECT["optional-dependencies"]) - {"all"}
    assert declared == set(EXTRAS)
    assert {canonicalize_name(each) for each in requirements(NAME, "all")[0].extras} == declared
    for extra, modules in EXTRAS.items():
        assert names_of(extra) <= distributions_of(set(modules)) <= closure([extra])
        assert {module for module in modules if module not in FOR_OTHERS} <= set(imported())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("installation") / "base")


@pytest.fixture(scope="module")
def with_extra(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installation]:
    """Return what makes an installation with one extra, and with no other."""
    folder = tmp_path_factory.mktemp("installations")
    return cache(lambda extra: Installation(folder / extra, [extra]))


IMPORT_ALL = """
import importlib, json, pkgutil, sys
import kustos
failed = {}
for found in pkgutil.walk_packages(kustos.__path__, "kustos.", onerror=lambda name: None):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        failed[found.name] = str(error)
print(json.dumps(failed))
"""


def test_without_extras_every_module_can_be_imported_but_those_of_the_extras(base: Installation) -> None:
    done = base.python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout)
    assert [name for name in failed if not name.startswith(tuple(ONLY_WITH))] == []
    assert {prefix for prefix in ONLY_WITH for name in failed if name.startswith(prefix)} == set(ONLY_WITH)


def test_without_extras_all_help_is_there(base: Installation) -> None:
    done = base.python("from kustos.cli.reference import page; print(page())")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == (ROOT / "docs" / "reference" / "cli.md").read_text().rstrip()


MISSING = [
    ("arrow", "decide --acls acls.yaml --requests requests.parquet", "Parquet needs `pyarrow`"),
    ("zookeeper", "migrate zookeeper://zk1 .", "reading a ZooKeeper needs `kazoo`"),
    ("gssapi", "serve gssapi.properties", "GSSAPI needs `gssapi`"),
    ("mapping", "serve mapping.properties", "a mapping rule needs `re2`"),
    ("oauth", "serve node.properties", "a login by OAUTHBEARER needs `joserfc`"),
    ("sign", "pipeline signoff check review.jws --key key.pem", "a signature needs `joserfc`"),
    ("spark", "pipeline run", "the pipeline needs `pyspark`"),
    ("spark", "pipeline report --audit . --out report", "the pipeline needs `pyspark`"),
    ("connect", "pipeline replay acls.yaml", "Spark Connect needs `grpc`"),
]


HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
NODE = f"""\
node.id=1
metadata.log.dir=metadata
listeners=SASL_PLAINTEXT://127.0.0.1:9092
kustos.upstream.bootstrap.servers=127.0.0.1:19092
sasl.enabled.mechanisms=OAUTHBEARER
oauthbearer.sasl.server.callback.handler.class={HANDLER}
"""
GSSAPI = """\
node.id=1
metadata.log.dir={}/metadata
listeners=SASL_PLAINTEXT://127.0.0.1:9092
kustos.upstream.bootstrap.servers=127.0.0.1:9093
gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true \
    storeKey=true keyTab="kafka.keytab" principal="kafka/localhost@EXAMPLE.COM";
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with the files that the commands of `MISSING` name."""
    (tmp_path / "acls.yaml").write_text("version: 1\nacls: []\n")
    (tmp_path / "requests.parquet").touch()
    (tmp_path / "review.jws").touch()
    (tmp_path / "key.pem").touch()
    (tmp_path / "gssapi.properties").write_text(GSSAPI.format(tmp_path))
    (tmp_path / "mapping.properties").write_text("ssl.principal.mapping.rules=RULE:a/b/\n")
    (tmp_path / "node.properties").write_text(NODE)
    (tmp_path / "tables").mkdir()
    return tmp_path


def try_command(installation: Installation, place: Path, extra: str, command: str) -> CompletedProcess[str]:
    remote = "spark:\n  remote: sc://127.0.0.1:1\n" if extra == "connect" else ""
    (place / "pipeline.yml").write_text(f"version: 1\ntables:\n  path: tables\n{remote}")
    return installation.kustos(*command.split(), cwd=place)


@pytest.mark.parametrize(("extra", "command", "words"), MISSING)
def test_a_command_whose_extra_is_missing_says_what_to_install(
    place: Path,
    base: Installation,
    with_extra: Callable[[str], Installation],
    extra: str,
    command: str,
    words: str,
) -> None:
    done = try_command(with_extra("spark") if extra == "connect" else base, place, extra, command)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert f"{words}, install it with `pip install 'kustos[{extra}]'`" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("extra", "command"), [(extra, command) for extra, command, _ in MISSING])
def test_a_command_needs_no_other_extra_than_the_one_that_it_names(
    place: Path, with_extra: Callable[[str], Installation], extra: str, command: str
) -> None:
    """The files that the commands get are empty: each command reads on to that error."""
    done = try_command(with_extra(extra), place, extra, command)
    assert "install it with" not in done.stderr
    assert "No module named" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode != ExitCode.OK


@pytest.mark.parametrize("extra", EXTRAS)
def test_with_an_extra_alone_its_modules_can_be_imported(
    with_extra: Callable[[str], Installation], extra: str
) -> None:
    done = with_extra(extra).python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    brought = closure([extra])
    failed = json.loads(done.stdout)
    assert [name for name in failed if closure([extra_needed_by(name)]) <= brought] == []


def test_reviewers_need_no_extra_but_the_one_for_signatures(
    tmp_path: Path, with_extra: Callable[[str], Installation]
) -> None:
    row = entitlement_row("User:bob", "WRITE", "old", granted_by=[texts_of(WRITE_OLD)])
    made = review_document([row], ACLS, as_of=AS_OF, dormant_days=90, created_at=AS_OF)
    (tmp_path / "q3.json").write_text(write_review(made))
    private, public = keys("Ed25519")
    (tmp_path / "private.pem").write_bytes(private)
    (tmp_path / "public.pem").write_bytes(public)
    steps = (
        "decide q3.json revoke --by ann --reason left --principal User:bob --unused --yes",
        "changes q3.json --commands",
        "close q3.json --by ann",
        "close q3.json --key private.pem --out q3.jws",
        "check q3.jws --key public.pem --exit-code",
    )
    assert {step.partition(" ")[0] for step in steps} == {each.name for each in signoff.registered_commands}
    for step in steps:
        done = with_extra("sign").kustos("pipeline", "signoff", *step.split(), cwd=tmp_path)
        assert done.returncode == ExitCode.OK, done.stderr


def test_every_extra_has_a_command_that_is_tried_without_it() -> None:
    assert {extra for extra, *_ in MISSING} == set(EXTRAS)


def test_another_failure_of_an_import_is_no_missing_extra() -> None:
    from kustos.extras import ExtraMissingError, needs_extra

    with pytest.raises(ImportError) as caught, needs_extra("arrow", "a test"):
        __import__("nothing_of_that_name")
    assert not isinstance(caught.value, ExtraMissingError)


def test_the_page_on_installing_names_each_extra_and_each_dependency() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    extras = {f"kustos[{extra}]" for extra in PROJECT["optional-dependencies"]}
    assert sorted(rows) == sorted(extras | names_of())


WITH_EXTRAS = re.compile(r"""pip install (['"]?)(?:kustos|\.)\[([a-z,]+)\]""")


def test_no_page_or_message_names_an_extra_that_is_not_there_or_that_a_shell_would_expand() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "Makefile"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        for quote, extras in WITH_EXTRAS.findall((ROOT / name).read_text()):
            assert quote, f"{name}: some shells expand `[{extras}]`"
            assert set(extras.split(",")) <= {*PROJECT["optional-dependencies"]}, name
