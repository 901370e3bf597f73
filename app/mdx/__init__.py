"""MDX as a language: text to tree, tree to text. Pure; knows no cube."""

from app.mdx.parser import parse, parse_expression
from app.mdx.printer import brief, quote, substitute, to_text
from app.mdx.source import MdxSyntaxError, Source
from app.mdx.tree import Query

__all__ = [
    "MdxSyntaxError",
    "Query",
    "Source",
    "brief",
    "parse",
    "parse_expression",
    "quote",
    "substitute",
    "to_text",
]
