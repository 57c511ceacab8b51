"""Write the pages of the API from the docstrings, so that they read alike on a host of code and in the built site.

In `docs/reference/*.md`, `<!-- api: trimbench.Trimming * -->` opens a part that is written here, up to `<!-- end -->`:
the docstring of the object, then those of its members: its own that are documented (`*`), inherited ones as well (`**`)
or those that are named. Properties that one paragraph describes are listed among the attributes.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpydoc.docscrape import NumpyDocString, Parameter

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
_PART = re.compile(r"(?P<opened><!-- api: (?P<name>\S+)(?P<members>[^>]*?) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
_TEXTS = ("Notes", "References")
_OTHERS = {"Signature", "Summary", "Extended Summary", "See Also", "Examples", "index"}


def written(page: str) -> str:
    """Return a page with its parts as the docstrings of today say them, a level below the heading before them."""

    def part(found: re.Match[str]) -> str:
        by_hand = _PART.sub("", page[: found.start()])
        level = max(2, 1 + len(re.findall("^#+ ", by_hand, re.MULTILINE)[-1].strip()))
        return found["opened"] + "\n" + _part(found["name"], found["members"].split(), "#" * level)

    return _PART.sub(part, page)


def _part(name: str, members: list[str], level: str) -> str:
    thing = _found(name)
    if members in (["*"], ["**"]):
        classes = [base for base in thing.__mro__[::-1] if base.__module__.startswith("trimbench")]
        found = {key: value for base in (classes if "**" in members else [thing]) for key, value in vars(base).items()}
        members = [key for key, value in found.items() if not key.startswith("_") and _is_documented(value)]
    found = {member: inspect.getattr_static(thing, member) for member in members}
    attributes = {member: value for member, value in found.items() if _is_attribute(value)}
    described = [_described(f"{level} `{name}`", thing, name.rpartition(".")[2], attributes)]
    for member, value in found.items():
        if member not in attributes:
            described.append(_described(f"#{level} `{name.rpartition('.')[2]}.{member}`", value, member))
    return "\n".join(described)


def _found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _is_documented(member: Any) -> bool:
    return (inspect.isfunction(getattr(member, "__func__", member)) or _is_property(member)) and bool(member.__doc__)


def _is_property(member: Any) -> bool:
    return isinstance(member, property) or hasattr(member, "attrname")


def _is_attribute(member: Any) -> bool:
    """Return whether a member is a property that one paragraph describes."""
    return _is_property(member) and "\n\n" not in _doc(member)


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _described(heading: str, thing: Any, name: str, attributes: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the heading, the call and the sections of a docstring, with more attributes, as Markdown."""
    docstring = NumpyDocString(textwrap.dedent(_doc(thing)))
    texts = {key: _doc(value).splitlines() for key, value in attributes.items()}
    own = [Parameter(key, kind, text or texts.get(key, [])) for key, kind, text in docstring["Attributes"]]
    listed = {key for keys, _, _ in own for key in keys.split(", ")}
    docstring["Attributes"] = own + [Parameter(key, "", text) for key, text in texts.items() if key not in listed]
    if unknown := {title for title in docstring if docstring[title]} - {*_LISTS, *_TEXTS, *_OTHERS}:
        raise ValueError(f"{heading}: write what {', '.join(sorted(unknown))} become, or rename these sections")
    parts = [heading, *_call(thing, name), _text(docstring["Summary"]), _text(docstring["Extended Summary"])]
    for title in _LISTS:
        if docstring[title]:
            parts += [f"**{title}**", "\n".join(_item(parameter) for parameter in docstring[title])]
    for title in _TEXTS:
        if docstring[title]:
            parts += [f"**{title}**", _text(docstring[title])]
    if docstring["See Also"]:
        names = [name for names, _ in docstring["See Also"] for name, _ in names]
        parts += ["**See also**", ", ".join(f"`{name}`" for name in names)]
    if docstring["Examples"]:
        parts += ["**Examples**", _examples(docstring["Examples"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _call(thing: Any, name: str) -> Iterator[str]:
    """Yield how a function or class is called, without types, which the descriptions of the parameters give."""
    function = getattr(thing, "__func__", thing)
    if not callable(function) or (inspect.isclass(function) and issubclass(function, Exception)):
        return
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for key, parameter in signature.parameters.items()
        if key not in ("self", "cls") and not key.startswith("_")
    ]
    call = f"{name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"
    if len(call) > 100:
        call = textwrap.fill(call, 100, subsequent_indent=" " * (len(name) + 1), break_long_words=False)
    yield f"```text\n{call}\n```"


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _item(parameter: Parameter) -> str:
    """Return a parameter, attribute, value or error as an item of a list."""
    called = f"**`{parameter.name}`**" if parameter.name else ""
    of_type = f"*{parameter.type}*".replace("_", r"\_") if parameter.type else ""
    head = ", ".join(part for part in (called, of_type) if part)
    described = _text(parameter.desc)
    return f"- {head}" + (":\n" + textwrap.indent(described, "  ") if described else "")


def _examples(lines: list[str]) -> str:
    """Return prose as prose, and each run of prompts with what they print as a block of code."""
    blocks = re.split(r"\n\s*\n", _text(lines))
    return "\n\n".join(f"```pycon\n{block}\n```" if block.lstrip().startswith(">>>") else block for block in blocks)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
