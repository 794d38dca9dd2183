"""The source of a function with all that it needs, as a file that stands alone: what a worker and another process run.

Of the function's module come the statements that bind what it reads, and what these read in turn: imports, functions, classes,
assignments. Modules of the program itself come as files beside it; installed packages are named with their versions.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import linecache
import math
import os
import pathlib
import site
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hone import errors

_BUILTINS = frozenset(dir(builtins))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_GONE = object()


@dataclasses.dataclass(frozen=True)
class Watched:
    """A global that a function reads, and its value when the function was registered."""

    names: dict[str, Any]
    name: str
    value: Any

    def has_changed(self) -> bool:
        now = self.names.get(self.name, _GONE)
        return now is not self.value and (type(now) is not type(self.value) or bool(now != self.value))

    def words(self, function: str) -> str:
        now = self.names.get(self.name, _GONE)
        return (f"{function} reads {self.name}, which was {self.value!r} when it was registered and is {'gone' if now is _GONE else repr(now)} now: "
                "register it again, or make it a parameter of the signature")


@dataclasses.dataclass(frozen=True)
class WatchedFunction:
    """A function of the program that a function calls, as a helper of a notebook: another one may take its name."""

    names: dict[str, Any]
    name: str
    value: Any
    codes: tuple[types.CodeType, ...] = dataclasses.field(repr=False)  # code objects of the text that a worker runs

    def has_changed(self) -> bool:
        now = self.names.get(self.name, _GONE)
        return now is not self.value and not _is_of_codes(now, self.codes)

    def words(self, function: str) -> str:
        return f"{function} calls {self.name}, which is another function than when it was registered: register it again"


@dataclasses.dataclass(frozen=True)
class Source:
    text: str
    entry: str
    files: dict[str, bytes]  # modules of the program that it imports, by their paths below the folder
    packages: dict[str, str]  # installed packages that it imports, and their versions
    compiles: bool  # a compiler wraps the function, and works at the first call
    watched: tuple[Watched | WatchedFunction, ...] = ()  # globals whose values at registration are part of the text

    @property
    def digest(self) -> str:
        whole = hashlib.sha256(self.text.encode())
        for name, content in sorted(self.files.items()):
            whole.update(name.encode() + b"\0" + content)
        whole.update(repr(sorted(self.packages.items())).encode())
        return whole.hexdigest()


def _fail(function: Any, words: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(f"{name_of(function)}: {words}")


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", None) or getattr(plain(function), "__name__", type(function).__name__))


def _layers(function: Any) -> list[Any]:
    """What decorators made of a function, the outermost first, and last the function of Python inside."""
    found = [function]
    while True:
        for name in ("__wrapped__", "py_func", "fn", "_torchdynamo_orig_callable", "func"):
            inner = getattr(found[-1], name, None)
            if callable(inner) and not isinstance(inner, types.MethodType):
                break
        else:
            return found
        if any(inner is one for one in found):
            return found
        found.append(inner)


def plain(function: Any) -> Any:
    """The function of Python inside of what decorators made of it: Triton's, numba's, torch's, JAX's."""
    return _layers(function)[-1]


def _exports(layer: Any) -> bool:
    """One of JAX's jit or of the CuTe DSL, which is compiled here: no worker makes it again."""
    return type(layer).__module__.startswith(("jax", "jaxlib")) or hasattr(layer, "_decorator_kind")


def _check_told(function: Any, decorators: int, at_hand: Any = None) -> None:
    """A worker makes the function again by its source. What an expression made of it, functools.partial(f, k=2), is not there: another
    function would be verified than the one that runs.

    Args:
        decorators: of its definition.
        at_hand: what its module has by its name; None: nothing yet, or it stands inside of a function.
    """
    *around, inner = _layers(function)
    while around and _exports(around[0]):
        around.pop(0)
    if not around or around[0] is at_hand:
        return
    if not decorators or isinstance(around[0], functools.partial) or plain(at_hand) is inner:
        what = "functools.partial" if isinstance(around[0], functools.partial) else f"a wrapper ({type(around[0]).__name__})"
        raise _fail(function, f"is inside of {what} that its source does not have: give that a name in your module first, fast = ..., or write a function that calls it")


def _decorators_of(statements: Iterable[ast.stmt], name: str) -> int:
    return max((len(node.decorator_list) for one in statements for node in _definitions(one)
                if not isinstance(node, ast.ClassDef) and node.name == name), default=0)


# Names bound and read by a statement ----------------------------------------------------------------------------------


def _base(node: ast.expr) -> str | None:
    """``lib`` of ``lib.sqrtf.restype`` and of ``lib["x"]``."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _bound(statement: ast.stmt) -> set[str]:
    """Names of the module that a statement binds, or changes what they stand for."""
    names: set[str] = set()
    work: list[ast.AST] = [statement]
    while work:
        node = work.pop()
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(_base(node) or "")
        work += ast.iter_child_nodes(node)
    return names - {""}


def _read(statement: ast.stmt) -> set[str]:
    """Names of the module that a statement reads, also inside of the functions that it defines."""
    names: set[str] = set()
    code = compile(ast.fix_missing_locations(ast.Module([statement], [])), "<module>", "exec", dont_inherit=True)
    work = [code]
    while work:
        one = work.pop()
        work += [constant for constant in one.co_consts if isinstance(constant, types.CodeType)]
        names |= _globals_of(one)
    return names


def _globals_of(code: types.CodeType) -> set[str]:
    import dis

    return {instruction.argval for instruction in dis.get_instructions(code)
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS") and isinstance(instruction.argval, str)}


def _read_in_calls(statements: list[ast.stmt]) -> set[str]:
    """Names of the module that the functions of statements read when they are called."""
    code = compile(ast.fix_missing_locations(ast.Module(statements, [])), "<module>", "exec", dont_inherit=True)
    return set().union(*(_globals_of(one) for one in _codes(code) if one is not code))


def _written_in_calls(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that functions declare global, to write them: counters and caches."""
    return {name for one in statements for node in ast.walk(one) if isinstance(node, ast.Global) for name in node.names}


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in _read(ast.Expr(statement.test))


# A module's statements ------------------------------------------------------------------------------------------------


def _decorates(decorator: ast.expr, names: dict[str, Any]) -> bool:
    """Whether it is one of hone's decorators, which must not run in the worker: it would register another kernel."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    try:
        value = eval(compile(ast.Expression(target), "<decorator>", "eval"), dict(names))  # a dotted name
    except Exception:
        return False
    return getattr(getattr(value, "func", value), "__module__", "") in ("hone.kernels", "hone.jax", "hone.triton")


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _applied(node: ast.FunctionDef | ast.AsyncFunctionDef, function: Any, lines: set[int]) -> list[ast.expr]:
    """The decorators that are already applied to a function. While one registers the function, those above it are not applied yet."""
    if plain(function) is function:  # its decorators returned the function itself
        return []
    running = [index for index, one in enumerate(node.decorator_list) if lines & {*range(one.lineno, (one.end_lineno or one.lineno) + 1)}]
    return node.decorator_list[running[-1] + 1:] if running else node.decorator_list


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _lines_running(names: dict[str, Any]) -> set[int]:
    """The lines of a module that are being executed. If one is a decorator's, that decorator is running."""
    frame, lines = sys._getframe(), set()
    while frame is not None:
        if frame.f_globals is names:
            lines.add(frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return lines


def _definitions(statement: ast.stmt) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """What a statement of a module defines, also under its if, try and with."""
    if isinstance(statement, _DEFINITIONS):
        yield statement
        return
    for field in ("body", "orelse", "finalbody", "handlers"):
        for one in getattr(statement, field, []):
            yield from _definitions(one)


def _strip_own(statement: ast.stmt, function: Any, names: dict[str, Any], here: int | None) -> ast.stmt:
    """Takes decorators off that are not behind the function: a program's own around hone.kernel would register again in the worker.

    Args:
        here: the line at which the text starts in the file, less one; None: the text is of cells.
    """
    for node in _definitions(statement):
        if isinstance(node, ast.ClassDef):
            continue
        live = function if node.name == plain(function).__name__ else names.get(node.name)
        code = getattr(plain(live), "__code__", None)
        if code is not None and code.co_name == node.name and (here is None or _first_line(node) + here == code.co_firstlineno):
            lines = {line - (here or 0) for line in _lines_running(names)} if live is function else set()
            node.decorator_list = _applied(node, live, lines)
    return statement


def _strip(statement: ast.stmt, names: dict[str, Any]) -> ast.stmt:
    for node in _definitions(statement):
        node.decorator_list = [
            one for one in node.decorator_list
            if not (_is_dotted(one.func if isinstance(one, ast.Call) else one) and _decorates(one, names))]
    return statement


def _text_of_module(function: Any, module: types.ModuleType | None) -> str:
    path = getattr(module, "__file__", None)
    shell = sys.modules.get("IPython")
    if path is None and shell is not None and shell.get_ipython() is not None:
        cells = [shell.get_ipython().input_transformer_manager.transform_cell(cell)
                 for cell in shell.get_ipython().user_ns.get("In", [])]
        return "\n".join(cell for cell in cells if "get_ipython()" not in cell)
    if module is None:
        raise _fail(function, "belongs to no module: define it in a file, or in a cell of a notebook")
    if path is not None:
        linecache.checkcache(path)
    try:
        return inspect.getsource(module)
    except (OSError, TypeError) as error:
        raise _fail(function, "has no source to be read, which a worker needs: define it in a file, or in a cell of a notebook") from error


@functools.lru_cache(maxsize=32)
def _statements(text: str) -> tuple[ast.stmt, ...]:
    return tuple(ast.parse(text).body)


def _same_code(ours: types.CodeType, theirs: types.CodeType) -> bool:
    if (ours.co_code, ours.co_names, ours.co_varnames, len(ours.co_consts)) != (
            theirs.co_code, theirs.co_names, theirs.co_varnames, len(theirs.co_consts)):
        return False
    return all(_same_code(one, other) if isinstance(one, types.CodeType) and isinstance(other, types.CodeType) else one == other
               for one, other in zip(ours.co_consts, theirs.co_consts))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_of_codes(function: Any, codes: Iterable[types.CodeType]) -> bool:
    code = getattr(plain(function), "__code__", None)
    return code is not None and any(_same_code(code, one) for one in codes if one.co_name == code.co_name)


def _functions_as_here(text: str | bytes, names: dict[str, Any], read: set[str]) -> list[WatchedFunction]:
    """The functions of a module that a text has as the program has them."""
    found = [name for name in sorted(read) if isinstance(names.get(name), types.FunctionType)]
    codes = tuple(_codes(compile(text, "<module>", "exec", dont_inherit=True))) if found else ()
    return [WatchedFunction(names, name, names[name], codes) for name in found if _is_of_codes(names[name], codes)]


def _check_unchanged(function: Any, text: str) -> None:
    """Checks that the file still has the code that runs here: it may have been edited after the import."""
    ours = plain(function).__code__
    try:
        there = [one for one in _codes(compile(text, "<module>", "exec", dont_inherit=True)) if one.co_name == ours.co_name]
    except SyntaxError as error:
        raise _fail(function, f"its file has changed since it was imported, and is no Python any more ({error})") from None
    if not any(_same_code(ours, one) for one in there):
        raise _fail(function, "its file has changed since it was imported: start the program again, or reload the module")


# Imported modules -----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    places = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.realpath(place) + os.sep for place in places if place)


def _is_programs(module: types.ModuleType | None) -> bool:
    """A module of the program's own: no package that is installed, nor one of a folder of packages."""
    path = getattr(module, "__file__", None)
    if path is None or not path.endswith(".py") or module.__name__.split(".")[0] == "hone":
        return False
    real = os.path.realpath(path)
    if real.startswith(_installed()):
        return False
    return not _is_of_packages(_root_of(module))


@functools.lru_cache(maxsize=256)
def _is_of_packages(folder: pathlib.Path) -> bool:
    """pip --target: a folder of packages has what says their versions. Some packages put a folder of their own on the path, below it."""
    return any(any(one.glob("*.dist-info")) for one in (folder, *folder.parents))


def _root_of(module: Any) -> pathlib.Path:
    """The folder that stands on the path for a module's import."""
    path = pathlib.Path(module.__file__)
    up = module.__name__.count(".") + (1 if path.name == "__init__.py" else 0)
    return path.parents[up]


def _imports(tree: ast.AST, package: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def _with_parents(names: set[str]) -> set[str]:
    return {".".join(name.split(".")[:count]) for name in names for count in range(1, name.count(".") + 2)}


def _attributes(trees: Iterable[ast.AST]) -> set[str]:
    """``F`` of ``config.F``."""
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _follow(names: set[str], files: dict[str, bytes], packages: dict[str, str], body: Iterable[ast.stmt] = ()) -> list[Watched | WatchedFunction]:
    """Adds the modules that are imported, and those that they import. Gives what may change of the program's."""
    work, seen = _with_parents(names), set()
    watched: list[Watched | WatchedFunction] = []
    read = _attributes(body)
    while work:
        name = work.pop()
        module = sys.modules.get(name)
        if name in seen or module is None:
            continue
        seen.add(name)
        if not _is_programs(module):
            top = name.split(".")[0]
            version = getattr(sys.modules.get(top), "__version__", None)
            if isinstance(version, str) and top not in sys.stdlib_module_names:
                packages[top] = version
            continue
        path = pathlib.Path(str(module.__file__))
        content = path.read_bytes()
        here, changing = _file_as_here(content, module, read)
        watched += changing
        files[path.relative_to(_root_of(module)).as_posix()] = here or b"\n"  # a pack has no empty files
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        work |= _with_parents(_imports(ast.parse(content), package)) - seen
    return watched


# ---------------------------------------------------------------------------------------------------------------------


def _literal(value: Any) -> str | None:
    """The text of a plain value; None where it is of another kind."""
    kind = type(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else "(1e999 - 1e999)" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is complex and math.isfinite(value.real) and math.isfinite(value.imag):
        return repr(value)
    if kind in (tuple, list):
        inner = [_literal(one) for one in value]
        if None in inner:
            return None
        text = ", ".join(one for one in inner if one is not None)
        return f"[{text}]" if kind is list else f"({text}{',' if len(inner) == 1 else ''})"
    if kind is dict:
        pairs = [(_literal(key), _literal(one)) for key, one in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    return None


def _is_fixed(value: Any) -> bool:
    """A plain value that cannot be changed in place."""
    return all(_is_fixed(one) for one in value) if type(value) is tuple else type(value) in (bool, int, float, complex, str, bytes, type(None))


def _texts_of(statements: Iterable[ast.stmt]) -> dict[str, str]:
    """What is bound once, to a literal."""
    found: dict[str, str] = {}
    several: set[str] = set()
    for one in statements:
        for name in _bound(one):
            (several.add if name in found else lambda _: None)(name)
            found.setdefault(name, "")
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else one.target if isinstance(one, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            try:
                found[target.id] = _literal(ast.literal_eval(one.value)) or ""
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                pass
    return {name: "" if name in several else text for name, text in found.items()}


def _as_here(statements: list[ast.stmt], names: dict[str, Any], read: set[str]) -> tuple[list[ast.stmt], list[Watched]]:
    """Assignments that give globals the plain values that they have in the program, where the statements do not: what is verified is what
    runs. They stand behind the statements, which were run with the values of the import."""
    texts = _texts_of(statements)
    made: list[ast.stmt] = []
    watched: list[Watched] = []
    for name in sorted(read & set(texts) - _written_in_calls(statements)):
        text = _literal(names[name]) if name in names else None
        if text is None:
            continue
        if text != texts[name]:
            made += ast.parse(f"{name} = {text}").body
        if _is_fixed(names[name]):
            watched.append(Watched(names, name, names[name]))
    return made, watched


def _file_as_here(content: bytes, module: types.ModuleType, read: set[str]) -> tuple[bytes, list[Watched | WatchedFunction]]:
    """The same of a module of the program, whose file is kept as it is where no value has changed."""
    statements = ast.parse(content).body
    inside = _read_in_calls(statements) | read
    literals = {name for name, text in _texts_of(statements).items() if text}
    made, watched = _as_here(statements, vars(module), inside & literals)
    functions = _functions_as_here(content, vars(module), inside - _written_in_calls(statements))
    return (content + b"\n" + _unparse(made).encode() if made else content), [*watched, *functions]


def _constant(function: Any, name: str, value: Any) -> list[ast.stmt]:
    """What a function closes over, as a statement."""
    if isinstance(value, types.ModuleType):
        return ast.parse(f"import {value.__name__} as {name}").body
    if callable(value) and hasattr(plain(value), "__code__"):
        inner = _definition(value, name)
        return [*inner]
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return ast.parse(f"{name} = {text}").body
    except (ValueError, SyntaxError, TypeError):
        pass
    raise _fail(function, f"closes over {name}, a {type(value).__name__}, which no source tells: make it a global of its module or a parameter")


def _definition(function: Any, entry: str) -> list[ast.stmt]:
    """A function that stands inside of another one, with what it closes over."""
    inner = plain(function)
    lines = textwrap.dedent(inspect.getsource(inner))
    try:
        node = ast.parse(lines).body[0]
    except SyntaxError as error:
        raise _fail(function, "stands inside of an expression: define it with def") from error
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1:
            node.targets = [ast.Name(entry, ast.Store())]
            return [node]
        raise _fail(function, "stands inside of an expression: define it with def")
    if node.name != inner.__name__:  # the file was edited: another function is at these lines
        raise _fail(function, "its file has changed since it was imported: start the program again, or reload the module")
    closed = inspect.getclosurevars(inner).nonlocals
    _strip_own(node, function, inner.__globals__, inner.__code__.co_firstlineno - 1)
    _strip(node, {**inner.__globals__, **closed})
    _check_told(function, len(node.decorator_list))
    before: list[ast.stmt] = []
    for name, value in closed.items():
        if value is not function and value is not inner:
            before += _constant(function, name, value)
    alias = [] if node.name == entry else ast.parse(f"{entry} = {node.name}").body
    return [*before, node, *alias]


def _slice(statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """The statements that bind what is wanted, and what they read in turn, in their order."""
    bound = [_bound(one) for one in statements]
    taken: set[int] = set()
    known: set[str] = set()
    while wanted:
        name = wanted.pop()
        known.add(name)
        for index, names in enumerate(bound):
            if name in names and index not in taken and not _is_main_guard(statements[index]):
                taken.add(index)
                wanted |= _read(statements[index]) - known
    found = set().union(*(bound[index] for index in taken)) if taken else set()
    if known - found - _BUILTINS:  # an import of * may bind it
        taken |= {index for index, one in enumerate(statements)
                  if isinstance(one, ast.ImportFrom) and any(alias.name == "*" for alias in one.names)}
    return [_trim(statements[index], known) for index in sorted(taken)]


def _trim(statement: ast.stmt, known: set[str]) -> ast.stmt:
    """An import of what is wanted alone."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)) or any(alias.name == "*" for alias in statement.names):
        return statement
    statement.names = [alias for alias in statement.names if (alias.asname or alias.name.split(".")[0]) in known]
    return statement


def _is_importable(function: Any) -> bool:
    """A function of an installed package, by its name."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", getattr(function, "__name__", ""))
    return module is not None and getattr(module, name, None) is function and not _is_programs(module) and module.__name__ != "__main__"


def _absolute(statements: list[ast.stmt], package: str) -> list[ast.stmt]:
    """Imports that are relative to the module's package name it: the file stands outside of it."""
    for top in statements:
        for node in ast.walk(top):
            if isinstance(node, ast.ImportFrom) and node.level:
                node.module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                node.level = 0
    return statements


def source_of(function: Any, caller: dict[str, Any]) -> Source:
    """The source of a function.

    Args:
        caller: globals of who registers it: where it is looked for by name when it is no function of Python.
    """
    inner = plain(function)
    files: dict[str, bytes] = {}
    packages: dict[str, str] = {}
    if isinstance(function, types.MethodType):
        raise _fail(function, "is a method of an object, which no source tells: write a function that calls it")
    if not hasattr(inner, "__code__"):
        return _of_name(function, caller, files, packages)
    module = sys.modules.get(inner.__module__)
    if _is_importable(function):
        text = f"from {inner.__module__} import {function.__name__}\n"
        _follow({inner.__module__}, files, packages)
        return Source(text, function.__name__, files, packages, False)
    if getattr(module, "__file__", None) is not None and inner.__code__.co_filename.startswith("<"):
        raise _fail(function, "has no source, for exec or eval made it: define it in a file, or in a cell of a notebook")
    text = _text_of_module(function, module)
    _check_unchanged(function, text)
    names = vars(module) if module is not None else inner.__globals__
    entry = inner.__name__ if inner.__name__.isidentifier() else "function"
    head = ast.parse(text)
    here = 0 if getattr(module, "__file__", None) is not None else None
    statements = [_strip(_strip_own(one, function, names, here), names) for one in head.body]
    own: list[ast.stmt] = []
    named = _global_name(function, names)
    if named is None and "<locals>" not in inner.__qualname__ and "." in inner.__qualname__:
        owner = inner.__qualname__.rpartition(".")[0]
        raise _fail(function, f"is a function of the class {owner}: define it with def at the top of its module, or write a function that calls it")
    if named is None and ("<locals>" in inner.__qualname__ or inner.__name__ == "<lambda>"):
        own = _definition(function, entry)
        wanted = set().union(*(_read(one) for one in own)) - {entry}
        wanted -= set().union(*(_bound(one) for one in own))
    else:
        wanted = {named or entry}
        entry = next(iter(wanted))
        binding = [one for one in statements if entry in _bound(one)]
        if binding and all(map(_is_main_guard, binding)):
            raise _fail(function, "stands under the if of its module that asks for __name__, which a worker does not run: define it with def at the top of its module")
        if not binding:
            raise _fail(function, f"its module binds {entry} nowhere that can be read: define it with def at the top of its module")
        if named is None:
            _check_told(function, _decorators_of(statements, entry), names.get(entry))
    package = getattr(module, "__package__", "") or ""
    needed = _slice(statements, wanted)
    read = _read_in_calls([*needed, *own])
    values, watched = _as_here([*needed, *own], names, read - set().union(*(_bound(one) for one in own)))
    taken = _absolute([*needed, *values, *own], package)
    future = [one for one in head.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    body = [*future, *(one for one in taken if one not in future)]
    text = _unparse(body)
    functions = _functions_as_here(text, names, read - _written_in_calls(body) - {entry})
    followed = _follow(_imports(ast.Module(body, []), package), files, packages, body)
    return Source(text, entry, files, packages, inner is not function, (*watched, *functions, *followed))


def _global_name(function: Any, names: dict[str, Any]) -> str | None:
    """What the module calls it, where that is not the function's own name: ``fast = torch.compile(slow)``."""
    own = plain(function).__name__
    if names.get(own) is function:
        return own
    return next((name for name, value in names.items() if value is function), None)


def _of_name(function: Any, caller: dict[str, Any], files: dict[str, bytes], packages: dict[str, str]) -> Source:
    """What is no function of Python: numpy's, ctypes', an object that can be called."""
    if _is_importable(function):
        module = function.__module__
        _follow({module}, files, packages)
        return Source(f"from {module} import {function.__name__}\n", function.__name__, files, packages, False)
    name = next((name for name, value in caller.items() if value is function), None)
    if name is None:
        raise _fail(function, "has no source: give it a name in your module first, fast = ..., or write a function that calls it")
    module = sys.modules.get(caller.get("__name__", ""))
    head = ast.parse(_text_of_module(function, module))
    body = _absolute(_slice([_strip(one, caller) for one in head.body], {name}), getattr(module, "__package__", "") or "")
    if not body:
        raise _fail(function, f"its module binds {name} nowhere that can be read")
    _follow(_imports(ast.Module(body, []), ""), files, packages)
    return Source(_unparse(body), name, files, packages, True)


def _unparse(statements: list[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(statements, []))) + "\n"


def uses(source: Source, package: str) -> bool:
    return package in source.packages


Function = Callable[..., Any]
