"""The demo publication: fictional income-tax returns of a fictional country, and tables of them."""

from demo.generate import create_demo

__all__ = ["create_demo"]
