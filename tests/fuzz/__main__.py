"""`python -m tests.fuzz reply --seconds 300`: one parser under atheris, guided by coverage.

atheris is no dependency of the tests: install it where this is run. A corpus is kept in `--corpus`, so that a later run
goes on where this one ended.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import atheris

_OURS = ("candidate", "devices", "evaluation", "magics", "problem", "prompts", "records")
with atheris.instrument_imports(include=["json", "shlex", *(f"llmkernel.{name}" for name in _OURS)]):
    from tests.fuzz.targets import all_targets

SLOW_SECONDS = 2.0


def main() -> None:
    targets = {t.name: t for t in all_targets()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=targets)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--max-length", type=int, default=4096)
    options = parser.parse_args()
    target = targets[options.target]
    corpus = options.corpus / options.target.replace(" ", "_")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, example in enumerate(target.examples):
        (corpus / f"example-{number}").write_bytes(example.encode(errors="surrogatepass"))
    words = corpus.parent / f"{corpus.name}.dict"
    words.write_text("".join(f'"{_escaped(w)}"\n' for w in dict.fromkeys(target.words) if w))
    count = 0

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        started = time.process_time()
        target(data if target.is_binary else data.decode("utf-8", "surrogateescape"))
        if time.process_time() - started > SLOW_SECONDS:
            raise TimeoutError(f"{time.process_time() - started:.1f} s for {len(data)} bytes")

    arguments = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={options.seconds}",
        f"-max_len={options.max_length}",
        *([f"-dict={words}"] if target.words else []),
        f"-artifact_prefix={corpus}-finding-",
        "-print_final_stats=1",
        "-timeout=20",
        "-rss_limit_mb=4096",
    ]
    os.environ.setdefault("LLMKERNEL_CACHE_DIR", str(options.corpus / "cache"))
    atheris.Setup(arguments, one)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{b:02x}" for b in word.encode(errors="surrogatepass"))


if __name__ == "__main__":
    main()
