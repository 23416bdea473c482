"""Rules that hold for the whole repository."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

import llmkernel

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "llmkernel"

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "docs",
    "examples",
    "kernelspec",
    "llmkernel",
    "pyproject.toml",
    "tests",
}

# Layers from docs/architecture.md; a package may import from its own layer and from those below.
LAYERS = [
    {"errors", "sandbox"},
    {"candidate", "problem", "devices"},
    {"prompts", "providers", "evaluation", "records", "library"},
    {"display", "synthesis"},
    {"magics", "cli", "config", "extension", "kernel", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Attempts and events are data that the prompts are built from and the records written of, not behaviour.
# Secrets are taken out everywhere, also of errors; what does it depends on nothing.
LEVEL_OF_MODULE = {
    "llmkernel.synthesis.events": LEVEL["evaluation"],
    "llmkernel.prompts.detector": LEVEL["errors"],
    "llmkernel.prompts.redaction": LEVEL["errors"],
    "llmkernel.prompts.secret_shapes": LEVEL["errors"],
}


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@cache
def modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def public_modules() -> list[str]:
    return [
        m.name for m in pkgutil.walk_packages([str(PACKAGE)], "llmkernel.") if not m.name.endswith("__main__")
    ]


def test_nothing_unexpected_lies_at_the_top():
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} <= TOP_LEVEL


def test_no_file_is_longer_than_500_lines():
    code = [p for p in tracked_files() if p.suffix in {".py", ".cu", ".cuh", ".h", ".cpp"}]

    assert {str(p.relative_to(ROOT)): n for p in code if (n := len(p.read_bytes().splitlines())) > 500} == {}


def test_dependencies_point_downwards():
    upward = {
        f"{module} → {imported}"
        for module, tree in modules().items()
        for imported in imported_modules(tree)
        if imported.startswith("llmkernel.") and level_of(imported) > level_of(module)
    }

    assert upward == set()


def level_of(module: str) -> int:
    parts = module.split(".")
    # The package itself exports from everywhere, lazily.
    top = len(LAYERS)
    by_package = LEVEL.get(parts[1], -1 if module != "llmkernel.__init__" else top)
    return LEVEL_OF_MODULE.get(module, by_package)


def imported_modules(tree: ast.Module):
    type_checking = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in type_checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "llmkernel")


def test_every_package_has_a_layer():
    names = {module.split(".")[1] for module in modules() if module != "llmkernel.__init__"}

    assert names == set(LEVEL)


@pytest.mark.parametrize(
    ("word", "home"),
    [
        ("anthropic", "providers"),
        ("openai", "providers"),
        ("httpx", "providers"),
        ("socket", "providers"),
        ("urllib.request", "providers"),
        ("ipywidgets", "display"),
    ],
)
def test_only_one_package_knows(word, home):
    strangers = {
        module
        for module, tree in modules().items()
        if module.split(".")[1] != home
        for imported in imported_modules(tree)
        if imported == word or imported.startswith(f"{word}.")
    }

    assert strangers == set()


HEAVY = (
    "torch",
    "cupy",
    "anthropic",
    "openai",
    "ipywidgets",
    "cuda",
    "numpy",
    "ml_dtypes",
    "detect_secrets",
    "requests",
)


def test_starting_a_kernel_imports_nothing_heavy():
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
import llmkernel, llmkernel.extension, llmkernel.kernel
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.extension_manager.load_extension("llmkernel")
assert "cuda_from" in shell.magics_manager.magics["cell"]
print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", public_modules())
def test_modules_import_and_export_what_they_say(name):
    module = importlib.import_module(name)

    exported = list(getattr(module, "__all__", []))
    # Constants, classes, functions, each in order: as the linter sorts them.
    assert exported == sorted(exported, key=lambda n: (not n.isupper(), n[:1].islower(), n))
    assert [n for n in exported if not hasattr(module, n)] == []


def test_the_package_exports_what_it_says():
    assert [n for n in llmkernel.__all__ if getattr(llmkernel, n, None) is None] == []
    assert set(llmkernel.__all__) <= set(dir(llmkernel)) | set(llmkernel._EXPORTS)


@pytest.mark.parametrize("name", public_modules())
def test_public_things_say_what_they_are(name):
    module = importlib.import_module(name)
    silent = [] if module.__doc__ else [name]
    for member_name, member in vars(module).items():
        if member_name.startswith("_") or getattr(member, "__module__", None) != name:
            continue
        if not (inspect.isclass(member) or inspect.isfunction(member)):
            continue
        if not member.__doc__:
            silent.append(member_name)
        if inspect.isclass(member):
            silent += [
                f"{member_name}.{n}"
                for n, function in vars(member).items()
                if inspect.isfunction(function)
                and not n.startswith("_")
                and function.__name__ != "<lambda>"  # the default of a field
                and not inspect.getdoc(function)
                and not _inherits_doc(member, n)
            ]

    assert silent == []


def _inherits_doc(cls: type, name: str) -> bool:
    return any(getattr(getattr(base, name, None), "__doc__", None) for base in cls.__mro__[1:])


@pytest.mark.parametrize("name", ["llmkernel", *public_modules()])
def test_examples_in_docstrings_are_true(name):
    module = importlib.import_module(name)

    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)

    assert results.failed == 0


# With a class of one letter each, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a path of somebody's machine": (
        r"(?<![\w.\"'`])/(?:w[o]rk|f[a]rm|r[o]ot)/\w|"
        r"/[h]ome/(?!user\b|me\b)\w+/|/[o]pt/venv"
    ),
    "an unfinished place": r"\b(?:T[O]DO|F[I]XME|X[X]X)\b",
    "a merge conflict": r"^(?:<{7} |>{7} )",
    "a word about how it was written": r"(?i)c[o]-authored-by|generated [w]ith (?:claude|codex)",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_text_holds(what):
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    found = set()
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found |= {f"{path.relative_to(ROOT)}: {match.group()}" for match in pattern.finditer(text)}

    assert found == set()


def test_text_files_end_in_one_newline_and_have_unix_line_ends():
    wrong = set()
    for path in tracked_files():
        content = path.read_bytes()
        if (
            path.suffix not in {".py", ".md", ".toml", ".cu", ".cuh", ".h", ".cpp", ".json", ".S", ""}
            or not content
        ):
            continue
        if b"\r\n" in content or not content.endswith(b"\n") or content.endswith(b"\n\n"):
            wrong.add(str(path.relative_to(ROOT)))

    assert wrong == set()


def test_relative_links_in_documents_lead_somewhere():
    broken = set()
    for path in tracked_files():
        if path.suffix != ".md" or PACKAGE in path.parents:
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                broken.add(f"{path.relative_to(ROOT)} → {target}")

    assert broken == set()


def readme_commands() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quick_start = readme.partition("## Quick start")[2].partition("\n## ")[0]
    return [block.strip() for block in re.findall(r"```bash\n(.*?)```", quick_start, re.DOTALL)]


def test_the_quick_start_is_two_commands_and_ci_runs_the_second():
    commands = readme_commands()

    assert len(commands) == 2
    assert all("\n" not in command for command in commands)
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["version"] == llmkernel.__version__
    assert f"## {llmkernel.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_dependencies_of_the_package_carry_lower_bounds_only():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    for requirement in project["dependencies"]:
        assert re.fullmatch(r"[a-z0-9-]+>=[0-9.]+(; sys_platform == '\w+')?", requirement), requirement


def test_the_wheel_holds_the_kernelspec_and_all_data(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [spec] = [n for n in names if n.endswith("share/jupyter/kernels/llm-cuda/kernel.json")]
        argv = json.loads(archive.read(spec))["argv"]

    assert argv[1:3] == ["-m", "llmkernel"]
    data = {
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if PACKAGE in path.parents and path.suffix != ".pyc"
    }
    assert data - names == set()
    assert {Path(name).suffix for name in data} >= {".py", ".cu", ".cuh", ".h", ".cpp", ".md", ".toml"}
    assert any(n.endswith("dist-info/licenses/LICENSE") for n in names)
