"""Whatever the OpenAPI document allows is answered as it says, and whatever it forbids is refused."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode

from pilotfish_http.routes import document
from support.clients.http import HttpServed

pytestmark = [pytest.mark.proves("HTTP-1"), pytest.mark.slow]

ENDLESS = "/events"
"""Its answer has no end; `test_events` reads it."""

TRIES = 12
"""Per operation and kind of data."""


def schema() -> Any:
    config = SchemathesisConfig()
    # What the document allows may still be no folder, or no question.
    config.projects.default.checks.positive_data_acceptance.expected_statuses = ["2xx", "409", "413", "422"]
    return schemathesis.openapi.from_dict(deepcopy(document()), config=config)


def cases() -> Iterator[Any]:
    """Each operation with data as it should be and, where it takes any, as it should not."""
    for operation in (made.ok() for made in schema().get_all_operations()):
        takes_data = bool(operation.body or operation.path_parameters)
        for mode in GenerationMode if takes_data else (GenerationMode.POSITIVE,):
            if operation.path != ENDLESS:
                tries = TRIES if takes_data else 1
                yield pytest.param(operation, mode, tries, id=f"{mode.value} {operation.label}")


@pytest.mark.parametrize(("operation", "mode", "tries"), list(cases()))
def test_every_request_is_answered_as_the_document_says(
    served: HttpServed, operation: Any, mode: GenerationMode, tries: int
) -> None:
    address, bearer = served.said["address"], served.bearer

    @settings(max_examples=tries, database=None)
    @given(st.data())
    def tried(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        case.call_and_validate(base_url=address, headers=bearer)

    tried()
    assert served.ask("GET", "/status").status == 200


def test_the_document_is_one(served: HttpServed) -> None:
    given_ = served.ask("GET", "/openapi.json").json
    assert given_["openapi"] == "3.1.0"
    for shape in given_["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(shape)
