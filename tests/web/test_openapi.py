"""The OpenAPI document against the site, by a program that makes requests from it."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.bootstrap import query_asker
from app.web.app import create_app
from tests.web.office import MemoryStore

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

schema = schemathesis.openapi.from_asgi(
    "/api/v1/openapi.json", create_app(MemoryStore(), asker=query_asker())
)


@schema.parametrize()
@settings(
    max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_answers_are_what_the_document_says(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=CHECKS)
