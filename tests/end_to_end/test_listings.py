"""The listings of README and docs/ are programs that compile and documents that parse: a page that lags behind is found here."""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import BUILD, DATA, CommandTest

ROOT = DATA.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# What a listing in C takes as given: page -> declarations outside and inside the function that its statements are put into.
GIVEN = {
    "README.md": ("static float pa[4] = {1, 2, 3, 4}, pb[4] = {1, 0, 0, 1}, pc[4];\n"
                  "static int64_t shape_a[] = {2, 2}, shape_b[] = {2, 2}, shape_c[] = {2, 2};", ""),
    "cli.md": ("static hone_algorithm axpy = {HONE_ALGORITHM};\nstatic hone_kernel kernels[2];", ""),
    "contexts.md": ("typedef struct my_row { const char *kernel, *config; } my_row;\nstatic int table;\n"
                    "const my_row *look_up(void *table, const char *device, const char *key);",
                    "hone_runtime *rt = NULL; hone_context *context = NULL; hone_error err; hone_status status;"),
    "cuda.md": ("", ""),
    "move-decisions.md": ("hone_status load(void *ctx, const hone_store_foreign *row, hone_store_decision *out, hone_error *err);\n"
                          "hone_status dump(void *ctx, const hone_store_decision *row, hone_store_foreign *out, hone_error *err);\n"
                          "static void *ctx;", ""),
    "opencl.md": ("", ""),
    "own-caches.md": ("", "hone_error err;"),
    "signatures.md": ("static hone_tensor a, b, c;", ""),
    "triton.md": ("", ""),
    "tune.md": ("void show(void *ctx, const hone_progress *progress);\nstatic volatile int stop;",
                "hone_runtime *rt = NULL; hone_error err;"),
    "xla.md": ("", ""),
}
# Pages whose programs other tests build (end_to_end_pages, end_to_end_ffi), and declarations of src/ (test_layers).
ELSEWHERE = {"write-a-kernel.md", "write-a-platform.md", "write-a-store.md", "ffi.md", "layout.md"}


def listings(page, kind):
    return [text for name, text in re.findall(r"(?ms)^```([a-z+]*)\n(.*?)^```$", page.read_text()) if name == kind]


def halves(text):
    """What stands outside of functions, up to the last line that ends a block at the margin, and the statements behind it."""
    ends = [found.end() for found in re.finditer(r"(?m)^\};?\n", text)]
    return (text[:ends[-1]], text[ends[-1]:]) if ends else ("", text)


def program(page, text):
    outside, inside = GIVEN[page]
    above, statements = halves(text)
    again = re.findall(r"(?m)^(?:hone_runtime \*rt|hone_error err|hone_status status|hone_context \*context)\b", statements)
    for declared in again:  # the listing says it itself
        name = declared.split()[-1].lstrip("*")
        inside = re.sub(rf"hone_\w+ \*?{name}\b[^;]*;", "", inside)
    return (f'#include "hone/hone.h"\n#include <stdio.h>\n{outside}\n{above}\n'
            f"int main(void)\n{{\n{inside}\n{statements}\nreturn 0;\n}}\n")


class Listings(CommandTest):
    def compile(self, source, *options):
        path = pathlib.Path(self.write("listing.c", source))
        done = subprocess.run(
            ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{ROOT}/include", str(path), *options],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{done.stderr}\n{source}")

    def test_what_pages_show_in_c_compiles(self):
        count = 0
        for page in PAGES:
            if page.name in ELSEWHERE:
                continue
            for text in listings(page, "c"):
                with self.subTest(page.name):
                    self.assertIn(page.name, GIVEN, "a page with a new listing in C: say here what it takes as given")
                    self.compile(program(page.name, text), "-fsyntax-only")
                    count += 1
        self.assertGreaterEqual(count, 13)

    @unittest.skipIf(os.environ.get("HONE_E2E_SANITIZE"), "a program without the sanitizer cannot load a library with it")
    def test_the_ten_lines_of_the_readme_run(self):
        text, = listings(ROOT / "README.md", "c")
        source = program("README.md", text).replace(
            "return 0;", 'printf("%d %.0f %.0f %.0f %.0f\\n", (int)status, pc[0], pc[1], pc[2], pc[3]);\nreturn 0;')
        self.compile(source, "-o", str(self.folder / "ten"), f"-L{BUILD}", "-lhone", f"-Wl,-rpath,{BUILD.resolve()}")
        done = subprocess.run([str(self.folder / "ten")], env=self.environment({}), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "0 1 2 3 4\n"), done.stderr)

    def test_what_pages_show_in_python_is_python_and_names_what_there_is(self):
        sources = {path.relative_to(ROOT / "python"): path.read_text() for path in (ROOT / "python" / "hone").rglob("*.py*")}
        everything = "\n".join(text for path, text in sources.items() if path.suffix in (".py", ".pyi"))
        count = 0
        for page in PAGES:
            for text in listings(page, "python"):
                for node in ast.walk(ast.parse(text, page.name)):
                    if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("hone."):
                        with self.subTest(page.name, name=ast.unparse(node)):
                            self.assertRegex(everything, rf"\b{node.attr}\b")
                            count += 1
        self.assertGreater(count, 30)

    def test_what_pages_show_in_json_is_json(self):
        count = 0
        for page in PAGES:
            for text in listings(page, "json"):
                if not re.match(r"[\[{]", text) or "..." in text or re.search(r'[{,]\s*"\w+"[,}]', text):
                    continue  # a part of one, or names of members alone
                with self.subTest(page.name, text=text):
                    try:
                        json.loads(text)
                    except json.JSONDecodeError:
                        for line in text.splitlines():  # one document a line
                            json.loads(line)
                    count += 1
        self.assertGreaterEqual(count, 3)


if shutil.which("cc") is None:
    del Listings
