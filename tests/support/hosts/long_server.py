"""An MCP server on standard streams with one tool, `long`, which answers with a text of the size that it is given."""

import json
import sys
from typing import Any

LINE = 50
TOOL = {
    "name": "long",
    "description": "A text of a size.",
    "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]},
}


def long_text(size: int) -> str:
    """So many characters, in lines that all differ; the last one is no space, which some would take away."""
    lines = (f"{number:07} {'word ' * 9:.41}\n" for number in range(size // LINE + 1))
    return "".join(lines)[: size - 1] + "."


def answered(message: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = message.get("params") or {}
    match message["method"]:
        case "initialize":
            about = {"name": "long", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": long_text(int(params["arguments"]["size"]))}]}
        case _:
            raise LookupError


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            said = {"result": answered(message)}
        except LookupError:
            said = {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
