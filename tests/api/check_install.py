#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that only knows the installed files and pkg-config works.

Installs into an empty folder, builds examples/embed.c there against the shared
and against the static library, and runs both.

Usage: check_install.py BUILD_ROOT SOURCE_ROOT SANITIZERS -- COMPILER [ARG...]
SANITIZERS is what -fsanitize= takes, or none.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command, **kwargs):
    print("+", *command, flush=True)
    return subprocess.run(command, check=True, text=True, **kwargs)


def pkg_config(tree, *arguments):
    """Answers for the installed tree, as if it were the root folder."""
    pc = next(tree.rglob("weir.pc"))
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent),
               PKG_CONFIG_SYSROOT_DIR=str(tree))
    return run("pkg-config", *arguments, "weir", env=env,
               stdout=subprocess.PIPE).stdout.split()


def check_headers(tree, source_root):
    installed = {p.name: p.read_bytes() for p in tree.rglob("weir/*.h")}
    ours = {p.name: p.read_bytes()
            for p in Path(source_root, "include/weir").glob("*.h")}
    if not ours or installed != ours:
        sys.exit("the installed headers are not those in include/weir")


def build(compiler, program, source, flags, libs):
    run(*compiler, "-Wall", "-Werror", "-o", str(program), str(source), *flags, *libs)


def output_of(program, library_dir):
    env = dict(os.environ, LD_LIBRARY_PATH=str(library_dir))
    return run(str(program), env=env, stdout=subprocess.PIPE).stdout


def check(tree, build_root, source_root, compiler):
    run("meson", "install", "-C", build_root, "--no-rebuild", "--quiet",
        "--destdir", str(tree), stdout=subprocess.DEVNULL)
    check_headers(tree, source_root)
    source = shutil.copy(Path(source_root, "examples/embed.c"), tree)
    shared = next(tree.rglob("libweir.so"))
    static = next(tree.rglob("libweir.a"))
    flags = pkg_config(tree, "--cflags")

    build(compiler, tree / "with-shared", source, flags, pkg_config(tree, "--libs"))
    libs = [str(static) if lib == "-lweir" else lib
            for lib in pkg_config(tree, "--static", "--libs")]
    if str(static) not in libs:
        sys.exit("weir.pc names no library")
    build(compiler, tree / "with-static", source, flags, libs)

    nowhere = tree / "nowhere"
    outputs = {output_of(tree / "with-shared", shared.parent),
               output_of(tree / "with-static", nowhere)}
    if len(outputs) != 1 or "pass" not in outputs.pop():
        sys.exit("the two programs do not say the same")


def main():
    split = sys.argv.index("--")
    build_root, source_root, sanitizers = sys.argv[1:split]
    compiler = sys.argv[split + 1:]
    if sanitizers != "none":
        compiler.append("-fsanitize=" + sanitizers)
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), build_root, source_root, compiler)


if __name__ == "__main__":
    main()
