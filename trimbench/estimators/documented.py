"""Where the pages of the estimators are, for the link in what a notebook shows of them."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any

_PAGES = {
    "ExpectedClassifier": "expected_classifier",
    "NaiveConformantClassifier": "conformant_classifier",
    "SelectionCorrectedNB": "selection_corrected_nb",
    "TrimmedClassifier": "trimmed_classifier",
}


class Documented:
    """Links to the page of an estimator, as scikit-learn shows it, where the installed package names its site.

    The site is the address ``Documentation`` among the project's in the package's metadata; without one there is no
    link.
    """

    _doc_link_module = "trimbench"

    @property
    def _doc_link_template(self) -> str:
        site = documentation()
        return f"{site.rstrip('/')}/reference/{{page}}.html" if site else ""

    def _doc_link_url_param_generator(self) -> dict[str, Any]:
        return {"page": _PAGES[type(self).__name__]}

    def _get_doc_link(self) -> str:
        # A class of somebody's own has no page here.
        is_ours = type(self).__module__.partition(".")[0] == self._doc_link_module and type(self).__name__ in _PAGES
        return self._doc_link_template.format(**self._doc_link_url_param_generator()) if is_ours else ""


@functools.cache
def documentation() -> str:
    """Return the address of the documentation by the metadata of the installed package, or an empty text."""
    try:
        urls = metadata.metadata("trimbench").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # a folder that is not installed
        return ""
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return str(named.get("Documentation", ""))
