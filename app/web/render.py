"""Contexts to HTML: one Jinja environment for each language, every text escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markdown_it import MarkdownIt
from markupsafe import Markup

from app.domain.cube import text_in
from app.web.assets import Assets
from app.web.charts import pixels
from app.web.contexts import Page
from app.web.language import translations
from app.web.marks import SHORT
from app.web.places import share


class _Compiled(BytecodeCache):
    """What templates were compiled to, in memory: words are looked up when a page is made, so that it is the
    same in every language."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = self._kept.get(bucket.key)
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


class Renderer:
    """Turns a page's context into bytes; ``asks``: whether the site answers readers' own queries."""

    def __init__(self, assets: Assets, asks: bool = False) -> None:
        self._assets = assets
        self._asks = asks
        self._environments: dict[str, Environment] = {}

    def __call__(self, page: Page) -> bytes:
        return self._environment(page.frame.language).get_template(page.template).render(page=page).encode()

    def _environment(self, language: str) -> Environment:
        if language not in self._environments:
            made = environment(language)
            made.globals["asset"] = self._assets.address
            made.globals["asks"] = self._asks
            self._environments[language] = made
        return self._environments[language]


def environment(language: str) -> Environment:
    """The templates in a language, with every text escaped."""
    made = Environment(
        loader=FileSystemLoader(share("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        auto_reload=False,
        bytecode_cache=_COMPILED,
    )
    made.install_gettext_translations(  # type: ignore[attr-defined]
        translations(language), newstyle=True
    )
    made.filters["in_language"] = text_in
    made.filters["px"] = pixels
    made.globals["short"] = SHORT
    return made


@cache
def _markdown() -> MarkdownIt:
    # Without raw HTML; images would be requests to somebody else.
    return MarkdownIt("commonmark", {"html": False, "typographer": False}).enable("table").disable("image")


def markdown(text: str) -> Markup:
    """Notes as HTML. Raw HTML in them stays text, and links that aren't web addresses stay text."""
    return Markup(_markdown().render(text)) if text.strip() else Markup()
