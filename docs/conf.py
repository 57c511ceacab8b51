"""How Sphinx builds the documentation: `scripts/docs`."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# The pages below a page in the navigation, by caption. Directives would stand as they are on a host of code, so pages
# have none; they are added while the pages are built.
CONTENTS = {
    "index": {
        "": "installation tutorial findings gallery architecture",
        "Tours": "tours/trimming tours/conformant tours/selection_bias tours/gaps",
        "How to": """
            howto/how-to-choose howto/study howto/own-classifier howto/trim-on-rows howto/classifier-with-gaps
            howto/missing-features howto/ask-next howto/selected-features howto/own-data howto/own-network
            howto/shared-configuration howto/sweep howto/figures howto/compare howto/check howto/audit
            howto/verdicts-without-python howto/another-paper howto/many-machines where contributing maintaining
        """,
        "Reference": """
            reference/commands reference/results reference/speed reference/trimming reference/models
            reference/conformant reference/selection_bias reference/asking reference/estimators reference/reproduction
            reference/saving reference/glossary reference/stability changelog
        """,
        "Mathematics": "theory/trimming theory/conformant theory/selection-bias theory/audits",
    },
    "findings": {"": "findings/trimming findings/conformant findings/selection_bias"},
    "reference/trimming": {"": "reference/bayesian_classifier reference/agreement"},
    "reference/models": {"": "reference/networks"},
    "reference/conformant": {"": "reference/conformant_model reference/explanations"},
    "reference/estimators": {
        "": """
            reference/expected_classifier reference/trimmed_classifier reference/conformant_classifier
            reference/selection_corrected_nb reference/displays reference/study
        """
    },
}
# These pages stand for files of the repository, which become part of them.
WHOLE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}

project = "trimbench"
author = "the authors of trimbench"
extensions = ["myst_nb"]
exclude_patterns = ["**/.ipynb_checkpoints"]

html_theme = "furo"
html_title = "trimbench"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["wide_content.css"]
# Formulas become MathML while the pages are built, so readers need neither a network nor a script.
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3

nb_execution_mode = "off"  # notebooks are stored with their outputs
# Whatever a notebook writes to standard error, such as a warning, fails the build.
nb_output_stderr = "error"

highlight_language = "text"  # of blocks that name none


def _complete(app: Sphinx, page: str, source: list[str]) -> None:
    if page in WHOLE:
        source[0] = f"```{{include}} ../{WHOLE[page]}\n:relative-docs: docs/\n```\n"
    # A host of code follows no link of the file system, such as `tours`; the documentation shows nothing outside of it.
    source[0] = re.sub(r"\]\(((?:\.\./)*)\.\./notebooks/(\w+)\.ipynb\)", r"](\1tours/\2)", source[0])
    for caption, pages in CONTENTS.get(page, {}).items():
        below = "".join(f"/{name}\n" for name in pages.split())
        title = f":caption: {caption}\n" if caption else ""
        source[0] += f"\n```{{toctree}}\n:hidden:\n{title}{below}```\n"


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _for_all_readers(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let the keyboard scroll wide blocks and tables, and give the headings of the navigation a level."""
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    navigation = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = navigation.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> None:
    """Register the navigation, the renderer of formulas, and what the theme leaves out for readers without a mouse."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("source-read", _complete)
    app.connect("html-page-context", _for_all_readers, priority=900)  # after the theme
