"""A copy of a function of Python in which certain calls go through functions of hone's, made of its source.

The copy does what the function does and nothing else: the source has to compile to the very code that runs, else there is no copy. Such
functions are decorated ones, those made by exec, and those of a file that was changed since.
"""

from __future__ import annotations

import __future__

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Callable
from typing import Any

# Replacements of a call's function. They get the function; an object and the name of its method; or the operands of @.
CALL, METHOD, PRODUCT = "__hone_call__", "__hone_method__", "__hone_product__"

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_NESTED = inspect.CO_NESTED


class _Calls(ast.NodeTransformer):
    def __init__(self, kind_of: Callable[[ast.Call], str | None]):
        self.kind_of = kind_of

    def visit_Call(self, node: ast.Call) -> ast.AST:
        kind = self.kind_of(node)  # before its children are rewritten
        self.generic_visit(node)
        if kind == METHOD and isinstance(node.func, ast.Attribute):
            node.func = _called(METHOD, [node.func.value, ast.Constant(node.func.attr)], node.func)
        elif kind == CALL:
            node.func = _called(CALL, [node.func], node.func)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _called(PRODUCT, [node.left, node.right], node) if isinstance(node.op, ast.MatMult) else node


def _called(name: str, args: list[ast.expr], place: ast.AST) -> ast.Call:
    made = ast.Call(ast.Name(name, ast.Load()), args, [])
    return ast.fix_missing_locations(ast.copy_location(made, place))


@functools.lru_cache(32)
def _parsed(lines: tuple[str, ...]) -> ast.Module | None:
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return None


def _path(node: ast.AST, name: str, line: int) -> list[ast.AST]:
    """The statements that a definition stands in, from the outermost to itself; none: it is not there."""
    for child in ast.iter_child_nodes(node):
        if getattr(child, "lineno", line) > line or getattr(child, "end_lineno", line) < line:
            continue
        if isinstance(child, ast.FunctionDef) and (child.name, child.lineno) == (name, line):
            return [child]
        inner = _path(child, name, line)
        if inner:
            return [child, *inner] if isinstance(child, ast.stmt) else inner
    return []


def _alone(path: list[ast.AST]) -> Any:
    """A copy of the definition with what its names depend on: the functions and classes that it stands in."""
    first = path[0]
    if len(path) == 1 or isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return copy.deepcopy(first)
    if not isinstance(first, ast.ClassDef):
        return _alone(path[1:])
    made = copy.copy(first)
    made.body, made.decorator_list = [_alone(path[1:])], []
    return made


def _imports(tree: ast.Module) -> list[ast.stmt]:
    """Those outside of functions: how a name's attribute is called depends on whether a module imports the name."""
    found: list[ast.stmt] = []
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", None) != "__future__":
            found.append(node)
        left += [one for one in ast.iter_child_nodes(node) if isinstance(one, (ast.stmt, ast.ExceptHandler)) and
                 not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return found


def _code_in(whole: types.CodeType, like: types.CodeType) -> types.CodeType | None:
    for one in whole.co_consts:
        if isinstance(one, types.CodeType):
            if (one.co_name, one.co_firstlineno) == (like.co_name, like.co_firstlineno):
                return one
            inner = _code_in(one, like)
            if inner is not None:
                return inner
    return None


def _compiled(statements: list[ast.stmt], code: types.CodeType) -> types.CodeType | None:
    whole = compile(ast.Module(statements, []), code.co_filename, "exec", flags=code.co_flags & _FUTURES, dont_inherit=True)
    return _code_in(whole, code)


def _is_same(one: types.CodeType | None, other: types.CodeType) -> bool:
    return one is not None and one.replace(co_flags=one.co_flags & ~_NESTED) == other.replace(co_flags=other.co_flags & ~_NESTED)


def rewritten(function: types.FunctionType, kind_of: Callable[[ast.Call], str | None], places: dict[str, Callable[..., Any]]) -> types.FunctionType | None:
    """The copy. None: it cannot be made.

    Args:
        kind_of: what a call becomes: CALL or METHOD; None: it stays.
        places: what stands for CALL, METHOD and PRODUCT.
    """
    code = function.__code__
    tree = _parsed(tuple(linecache.getlines(code.co_filename, function.__globals__)))
    path = _path(tree, code.co_name, code.co_firstlineno) if tree is not None else []
    if tree is None or not path or path[-1].decorator_list:  # type: ignore[attr-defined]
        return None
    imports, node = _imports(tree), _alone(path)
    if not _is_same(_compiled([*imports, node], code), code):
        return None
    inner = _path(ast.Module([node], []), code.co_name, code.co_firstlineno)[-1]
    _Calls(kind_of).visit(inner)
    around = ast.FunctionDef("around", ast.parse(f"def around({', '.join(places)}): pass").body[0].args, [ast.Global([node.name]), node], [])  # type: ignore[attr-defined]
    made_code = _compiled([*imports, ast.fix_missing_locations(ast.copy_location(around, node))], code)
    if made_code is None:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells.update({name: types.CellType(one) for name, one in places.items()})
    closure = tuple(cells[name] for name in made_code.co_freevars)
    made = types.FunctionType(made_code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made
