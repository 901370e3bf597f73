"""The demo publication: fictional income-tax returns of a fictional country, and tables of them."""

from demo.generate import create_demo
from demo.starting import create_starter

__all__ = ["create_demo", "create_starter"]
