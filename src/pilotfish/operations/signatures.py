"""The signatures of a call: which overloads there are, and which parameter the position is in."""

from msgspec import Struct

from pilotfish.api.answers import Signature
from pilotfish.operations.lenient import one_or_none, text_of
from pilotfish.operations.request_context import RequestContext
from pilotfish.operations.results import Reading, Spot, View
from pilotfish.protocol.codec import decode_items
from pilotfish.protocol.wire import UNSET, Raw, WireParameter, WireSignature, WireSignatureHelp


class FoundSignature(Struct, frozen=True):
    """A signature; it has no place of its own."""

    signature: Signature

    @property
    def spots(self) -> tuple[Spot, ...]:
        return ()

    @property
    def name(self) -> str:
        return self.signature.label

    def resolved(self, view: View) -> Signature:  # noqa: ARG002 -- part of `Found`; there is no place to look at
        return self.signature


def read_signatures(raw: Raw, _asked: RequestContext) -> Reading[FoundSignature]:
    """Read `SignatureHelp | null`."""
    help_ = one_or_none(raw, WireSignatureHelp)
    if help_ is None or help_.signatures is UNSET:
        return Reading()
    items = decode_items(help_.signatures, WireSignature)
    active = help_.active_signature or 0
    found = [_signature(item, help_, active=number == active) for number, item in enumerate(items.items)]
    return Reading(tuple(FoundSignature(signature) for signature in found), items.skipped)


def _signature(item: WireSignature, help_: WireSignatureHelp, *, active: bool) -> Signature:
    parameters = tuple(_parameter(parameter, item.label) for parameter in item.parameters or ())
    # Since 3.16 each signature may name its own parameter; before, one number was for the active signature.
    index = item.active_parameter if item.active_parameter is not None else help_.active_parameter
    return Signature(
        label=item.label,
        documentation=text_of(item.documentation),
        parameters=parameters,
        active_parameter=index if active and index is not None and 0 <= index < len(parameters) else None,
        active=active,
    )


def _parameter(parameter: WireParameter, label: str) -> str:
    """The parameter's label, a string or a pair of UTF-16 offsets into the label of its signature."""
    match parameter.label:
        case str() as text:
            return text
        case [int() as start, int() as end] if 0 <= start <= end:
            return label.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "ignore")
        case _:
            return ""
