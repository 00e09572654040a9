"""Errors of Triton's compiler: the place in the learner's file, and the diagnosis.

A compile error knows its place relative to the source of one function, so the function is looked up in the file. The
place is then narrowed to what a reader should look at: the assignment inside a loop rather than the loop.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from checker.compile_places import (
    Located,
    call_at,
    called_name,
    function_at,
    launched,
    locate,
    return_in_loop,
    statement_at,
    where,
)
from checker.compile_rules import COMPILE_RULES, LOWERING_RULES, Rule
from checker.compiler_output import diagnostics
from checker.findings import Finding
from checker.lint_slips import precedence_at
from checker.source import frames_in


def compile_finding(exc: Any, file: Path, source: str, tree: ast.Module) -> Finding:
    """The finding for Triton's CompilationError and its kin."""
    finding = _compile_finding(exc, file, source, tree)
    frames = frames_in(exc, file)
    if finding.code == "K304" and frames:
        # The compiler stumbles where the argument is used; the mistake is where it is passed.
        column = frames[-1].colno
        return replace(finding, line=frames[-1].lineno, column=column + 1 if column is not None else None)
    return finding


def _compile_finding(exc: Any, file: Path, source: str, tree: ast.Module) -> Finding:
    located, said = None, ""
    for error in _chain(exc):
        if hasattr(error, "node"):
            located = locate(error, tree) or located
            said = getattr(error, "error_message", None) or said
        elif str(error):
            said = said or str(error)
    said = str(said).strip()
    if type(exc).__name__ == "CompileTimeAssertionFailure" or "CompileTimeAssertion" in type(exc).__name__:
        rule = Rule("", "K200", f"tl.static_assert failed{': ' + said if said else ''}", "this condition must hold")
        return _finding(rule, None, located, file, source)
    node = type(located[1]).__name__ if located else ""
    called = called_name(located[1]) if located else ""
    special = _special(said, located)
    if special is not None:
        return _finding(special, None, located, file, source)
    for rule in COMPILE_RULES:
        match = rule.match(said, node, called)
        if match is not None:
            return _finding(rule, match, located, file, source)
    if located is not None and (left := return_in_loop(located[0])) is not None and "AssertionError" in said:
        return _finding(_rule("K208", "Cannot have `return`"), None, (located[0], left), file, source)
    message = f"Triton says: {_one_line(said)}" if said else "Triton cannot compile this"
    return _finding(
        Rule("", "K200", "{0}", "look at the types and shapes of what stands here"), message, located, file, source
    )


def lowering_finding(text: str, file: Path, source: str, tree: ast.Module, launched_at: int | None) -> Finding:
    """The finding for an error without a place: what Triton printed has one, or else the source is searched."""
    printed = [item for item in diagnostics() if item.file == str(file)]
    kernel = function_at(tree, printed[0].line) if printed else launched(tree, launched_at)
    for item in printed:
        for rule in LOWERING_RULES:
            match = re.search(rule.pattern, item.text)
            if match is not None:
                return _finding(rule, match, statement_at(tree, item.line), file, source)
    if kernel is not None and (left := return_in_loop(kernel)) is not None:
        return _finding(_rule("K208", "Cannot have `return`"), None, (kernel, left), file, source)
    launch = call_at(tree, launched_at)
    if launch is not None and any(keyword.arg == "num_ctas" for keyword in launch.keywords):
        rule = Rule("", "K220", "this num_ctas is not allowed", "leave num_ctas out, or take 1, 2, 4 or 8")
        return _finding(rule, None, (kernel or _NOWHERE, launch), file, source)
    said = next((item.text for item in printed), text)
    located = statement_at(tree, printed[0].line) if printed else None
    if located is None and launched_at is not None:
        return Finding("K200", f"Triton says: {_one_line(said)}", _LOOK, file=str(file), line=launched_at)
    return _finding(Rule("", "K200", "{0}", _LOOK), f"Triton says: {_one_line(said)}", located, file, source)


_LOOK = "look at the types of what stands here; simplify the kernel until it compiles, then add back"


def _rule(code: str, part: str) -> Rule:
    return next(rule for rule in COMPILE_RULES if rule.code == code and part in rule.pattern)


def _finding(
    rule: Rule, match: re.Match[str] | str | None, located: Located | None, file: Path, source: str
) -> Finding:
    """Fill in a rule's words and narrow its place."""
    groups: tuple[str, ...] = ()
    if isinstance(match, re.Match):
        groups = (match[0], *(_plain(group or "") for group in match.groups()))
    elif isinstance(match, str):
        groups = (match,)
    message, advice = (_fill(text, groups) for text in (rule.message, rule.advice))
    code = rule.code
    line = column = None
    if located is not None:
        node = _narrow(code, groups, located)
        line, column = where(node)
        if code == "K202":
            message, advice = _constexpr_words(located[0], node, message, advice)
        if code == "K207" and line is not None and precedence_at(source, line):
            code, message = "K111", "the `&` binds tighter than the comparisons around it"
            advice = "put each comparison in parentheses: `(a < b) & (c < d)`"
    return Finding(code, message, advice, file=str(file), line=line, column=column)


def _fill(text: str, groups: tuple[str, ...]) -> str:
    return re.sub(r"\{(\d)\}", lambda found: groups[int(found[1])] if int(found[1]) < len(groups) else "", text)


_NOWHERE = next(node for node in ast.parse("def nowhere(): ...").body if isinstance(node, ast.FunctionDef))

_CONSTRUCTS = {
    "AsyncFor": "async for",
    "Await": "await",
    "ClassDef": "a class",
    "Delete": "del",
    "Dict": "a dict",
    "DictComp": "a dict",
    "GeneratorExp": "a generator",
    "Global": "global",
    "Import": "import",
    "ImportFrom": "import",
    "Lambda": "lambda",
    "Match": "match",
    "NamedExpr": "`:=`",
    "Nonlocal": "nonlocal",
    "Raise": "raise",
    "Set": "a set",
    "SetComp": "a set",
    "Starred": "`*`",
    "Try": "try",
    "With": "with",
    "Yield": "yield",
}
"""Classes of Python's ast as a reader knows them."""


def _plain(text: str) -> str:
    """A type as the compiler writes it, as a reader would: `<['256'], fp32>` is `a block of 256 fp32`."""
    block = re.fullmatch(r"<\[(.*?)\], (\w+)>|(\w+)\[((?:constexpr\[\d+\](?:, )?)+)\]", text.strip())
    if block is not None:
        dtype = block[2] or block[3]
        sizes = re.findall(r"\d+", block[1] if block[1] is not None else block[4])
        return f"a block of {'x'.join(sizes)} {dtype}"
    text = re.sub(r"triton\.language\.", "", text.strip().removesuffix("[]"))
    text = _CONSTRUCTS.get(text, text.lower() if text in ("Mask", "Value", "Other") else text)
    return text.replace("['fp32', 'fp64']", "fp32 or fp64")


def _one_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    wrapped = re.fullmatch(r"\w+\((['\"])(.*)\1\)", line)
    return (wrapped[2] if wrapped else line)[:200]


def _special(said: str, located: Located | None) -> Rule | None:
    """What depends on more than the text: undefined names, arguments of a wrong kind, operand types."""
    if (missing := re.search(r"NameError\(['\"](\w+) is not defined", said)) is not None:
        return _undefined(missing[1], located)
    if located is None:
        return None
    function, node = located
    if re.search(r"list index out of range|'pointer_type' object has no attribute", said) and "shape" in ast.unparse(
        node
    ):
        return Rule("", "K211", "a pointer has no shape", "pass the sizes as arguments of the launch")
    if re.search(
        r"'NoneType' object has no attribute '?(dtype|type)|'tuple' object has no attribute dtype"
        r"|language\.core\.tuple'> to tensor|'(torch\.dtype|builtin_function_or_method)' object has no attribute"
        r" '(is_ptr|scalar)'",
        said,
    ) and (name := _suspect(function, node)):
        kind = "None" if "NoneType" in said else "a tuple" if "tuple" in said else "of a kind no kernel can use"
        return Rule("", "K304", f"the argument `{name}` of the launch is {kind}", "pass a tensor, an int or a float")
    if (types := re.search(r"invalid operands of type (\S+) and ([\w.<>]+)", said)) is not None:
        return _operands(_plain(types[1]), _plain(types[2]), function, node)
    integer = re.search(r"Unsupported ptr type .*int(64|32)", said)
    if integer is not None and (name := _suspect(function, node, pointer=True)):
        return Rule(
            "",
            "K304",
            f"the argument `{name}` of the launch is an integer, not a tensor",
            "pass the tensor itself: not x.data_ptr(), not its length",
        )
    return None


def _undefined(name: str, located: Located | None) -> Rule:
    if name == "breakpoint":
        return Rule(
            "", "K211", "a compiled kernel cannot stop at breakpoint()", "`kata debug` can; take it out for a check"
        )
    if hasattr(builtins, name):
        advice = (
            f"use tl.{name}" if name in ("sum", "abs", "sorted", "all", "any") else "use a function of triton.language"
        )
        return Rule("", "K211", f"Python's `{name}` does not exist in a kernel", advice)
    if located is not None:
        function, node = located
        stores = [
            child
            for child in ast.walk(function)
            if isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Store)
        ]
        if any(child.lineno < getattr(node, "lineno", 0) for child in stores):
            return Rule(
                "",
                "K212",
                f"`{name}` is set in only one branch or inside a loop, so it need not exist here",
                f"give `{name}` a value before the branch or loop",
            )
    return Rule("", "K212", f"`{name}` is not defined", "look for a misspelt name, or a missing `tl.` in front of it")


def _operands(left: str, right: str, function: ast.FunctionDef, node: ast.AST) -> Rule:
    if "pointer<" in left + right:
        name = _suspect(function, node)
        if name and "ptr" not in name:
            return Rule(
                "",
                "K304",
                f"the argument `{name}` of the launch is a tensor; the kernel computes with it as a number",
                "pass a Python number: x.numel(), not torch.tensor(...); t.item() if it is in a tensor",
            )
        if "float" in left + right or "fp" in right.replace("pointer<fp", ""):
            return Rule(
                "", "K216", "a pointer plus a float", "offsets are integers: divide with //, convert with .to(tl.int64)"
            )
        return Rule(
            "", "K216", f"no such operation on {left} and {right}", "a pointer allows + and - with integer offsets only"
        )
    return Rule(
        "", "K216", f"no such operation on {left} and {right}", "convert one side, or compare first: masks are booleans"
    )


def _suspect(function: ast.FunctionDef, node: ast.AST, pointer: bool = False) -> str | None:
    """The parameter of a kernel that this place uses, pointers last unless one is looked for."""
    parameters = [argument.arg for argument in function.args.args]
    roots: list[ast.AST] = [node.args[0]] if pointer and isinstance(node, ast.Call) and node.args else [node]
    used = [name.id for root in roots for name in ast.walk(root) if isinstance(name, ast.Name)]
    # One step back through plain assignments: `ptrs = x_ptr + offs` leads from ptrs to x_ptr.
    for child in ast.walk(function):
        if (
            isinstance(child, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id in used for t in child.targets)
            and pointer
        ):
            used += [name.id for name in ast.walk(child.value) if isinstance(name, ast.Name)]
    candidates = [name for name in used if name in parameters]
    candidates.sort(key=lambda name: ("ptr" in name) != pointer)
    if pointer and candidates and "ptr" not in candidates[0]:
        return None
    return candidates[0] if candidates else None


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """An exception and what caused it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _narrow(code: str, groups: tuple[str, ...], located: Located) -> ast.AST:
    """From the statement that the compiler names to the expression a reader should look at."""
    function, node = located
    if code == "K205" and isinstance(node, ast.If | ast.While | ast.IfExp):
        return node.test
    if code == "K208" and not isinstance(node, ast.Return | ast.Break | ast.Continue):
        return return_in_loop(function) or node
    if code == "K209" and len(groups) > 1:
        assigned = [
            child
            for child in ast.walk(node)
            if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign) and groups[1] in _targets(child)
        ]
        return assigned[-1] if assigned else node
    if code == "K216" and isinstance(node, ast.For):
        return node.iter
    return node


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _constexpr_words(function: ast.FunctionDef, node: ast.AST, message: str, advice: str) -> tuple[str, str]:
    """Name the run-time parameter that stands in a shape, if there is one."""
    constant = {
        argument.arg
        for argument in function.args.args
        if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
    }
    parameters = {argument.arg for argument in function.args.args}
    for child in ast.walk(node):
        if isinstance(child, ast.BinOp) and isinstance(child.op, ast.Div):
            return message, "`/` gives a float: divide with `//`"
        if isinstance(child, ast.Name) and child.id in parameters - constant:
            return (
                f"`{child.id}` is known only when the kernel runs, and the shape of a block must be known before",
                f"declare the parameter `{child.id}: tl.constexpr` if it may be fixed, or use a BLOCK_SIZE and a mask",
            )
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id in constant:
            return (
                f"the shape of a block must be an integer: what is `{child.id}` here?",
                "pass a plain int to the launch",
            )
    return message, advice
