"""The examples run as their pages say."""

import re
import subprocess
import sys

from testkit.paths import ROOT


def test_the_page_on_deciding_shows_the_example_and_what_it_prints() -> None:
    example = ROOT / "examples" / "decide.py"
    page = (ROOT / "docs" / "how-to" / "decide-in-a-program.md").read_text()
    [code] = re.findall(r'```python title="examples/decide.py"\n(.*?)```', page, re.DOTALL)
    [printed] = re.findall(r'```text title="what it prints"\n(.*?)```', page, re.DOTALL)
    assert code == example.read_text()
    run = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    assert run.stdout == printed


def test_the_page_on_custom_authorizers_shows_the_example_whole() -> None:
    page = (ROOT / "docs" / "how-to" / "custom-authorizer.md").read_text()
    [code] = re.findall(r'```python title="examples/team_authorizer.py"\n(.*?)```', page, re.DOTALL)
    assert code == (ROOT / "examples" / "team_authorizer.py").read_text()


def test_the_page_on_principal_builders_shows_the_example_whole() -> None:
    page = (ROOT / "docs" / "how-to" / "principal-builder.md").read_text()
    [code] = re.findall(r'```python title="examples/service_principals.py"\n(.*?)```', page, re.DOTALL)
    assert code == (ROOT / "examples" / "service_principals.py").read_text()


def test_the_page_on_callback_handlers_shows_the_example_whole() -> None:
    page = (ROOT / "docs" / "how-to" / "sasl-callback-handlers.md").read_text()
    [code] = re.findall(r'```python title="examples/password_file.py"\n(.*?)```', page, re.DOTALL)
    assert code == (ROOT / "examples" / "password_file.py").read_text()
