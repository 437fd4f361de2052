"""The four APIs that coding agents ask models through, as far as a host reads them."""

import json
from collections.abc import Iterator
from typing import Any, cast

from support.hosts.model_script import Answer, Call, Heard, Json, Say

MODEL = "scripted"
TOKENS = 10
"""Of everything: hosts add them up and show them."""


class Messages:
    """Anthropic's Messages API."""

    def heard(self, body: Json) -> Heard:
        blocks = [
            (message["role"], block)
            for message in body.get("messages", [])
            for block in _blocks(message.get("content", ""))
        ]
        return Heard(
            tuple(tool["name"] for tool in _tools(body)),
            tuple(text_of(block.get("content")) for _, block in blocks if block.get("type") == "tool_result"),
            tuple(text_of(block) for role, block in blocks if role == "assistant" and block.get("type") == "text"),
        )

    def whole(self, answer: Answer, number: int) -> Json:
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": self._content(answer, number),
            "stop_reason": _either(answer, "end_turn", "tool_use"),
            "stop_sequence": None,
            "usage": {"input_tokens": TOKENS, "output_tokens": TOKENS},
        }

    def events(self, answer: Answer, number: int) -> list[Json]:
        whole = self.whole(answer, number)
        blocks = [event for index, block in enumerate(whole["content"]) for event in self._block(index, block)]
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        return [
            {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
            *blocks,
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": TOKENS}},
            {"type": "message_stop"},
        ]

    def _content(self, answer: Answer, number: int) -> list[Json]:
        if isinstance(answer, Say):
            return [{"type": "text", "text": answer.text}]
        texts = [{"type": "text", "text": call.said} for call in answer if call.said]
        calls = [
            {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.tool, "input": call.arguments}
            for index, call in enumerate(answer)
        ]
        return [*texts, *calls]

    def _block(self, index: int, block: Json) -> Iterator[Json]:
        if block["type"] == "text":
            empty: Json = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


class Chat:
    """OpenAI's chat completions, which most other providers speak too."""

    def heard(self, body: Json) -> Heard:
        messages = body.get("messages", [])
        return Heard(
            tuple(tool["function"]["name"] for tool in _tools(body)),
            tuple(text_of(message["content"]) for message in messages if message["role"] == "tool"),
            tuple(text_of(message.get("content")) for message in messages if message["role"] == "assistant"),
        )

    def whole(self, answer: Answer, number: int) -> Json:
        message = {"role": "assistant", "content": None, **self._said(answer, number)}
        return self._envelope(number, "chat.completion", message=message, finish_reason=self._finish(answer))

    def events(self, answer: Answer, number: int) -> list[Json]:
        kind = "chat.completion.chunk"
        delta = {"role": "assistant", "content": None, **self._said(answer, number)}
        first = [] if isinstance(answer, Say) else [{"content": call.said} for call in answer if call.said]
        return [
            *(self._envelope(number, kind, delta=said, finish_reason=None) for said in first),
            self._envelope(number, kind, delta=delta, finish_reason=None),
            self._envelope(number, kind, delta={}, finish_reason=self._finish(answer)),
        ]

    def _envelope(self, number: int, kind: str, **choice: Any) -> Json:
        usage = {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS}
        base = {"id": f"chat_{number}", "object": kind, "created": 1, "model": MODEL, "usage": usage}
        return base | {"choices": [{"index": 0, **choice}]}

    def _finish(self, answer: Answer) -> str:
        return _either(answer, "stop", "tool_calls")

    def _said(self, answer: Answer, number: int) -> Json:
        if isinstance(answer, Say):
            return {"content": answer.text}
        calls = [
            {
                "index": index,
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
            }
            for index, call in enumerate(answer)
        ]
        return {"tool_calls": calls}


class Responses:
    """OpenAI's responses."""

    def heard(self, body: Json) -> Heard:
        given = body.get("input", [])
        items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return Heard(
            tuple(tool.get("name", tool["type"]) for tool in _tools(body)),
            tuple(text_of(item["output"]) for item in items if str(item.get("type")).endswith("_call_output")),
            tuple(text_of(item.get("content")) for item in items if item.get("role") == "assistant"),
        )

    def whole(self, answer: Answer, number: int) -> Json:
        usage = {"input_tokens": TOKENS, "output_tokens": TOKENS, "total_tokens": 2 * TOKENS}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": MODEL,
            "output": self._items(answer, number),
            "usage": usage | details,
        }

    def events(self, answer: Answer, number: int) -> list[Json]:
        whole = self.whole(answer, number)
        begun: Json = whole | {"status": "in_progress", "output": [], "usage": None}
        items: list[Json] = [
            {"type": f"response.output_item.{step}", "output_index": index, "item": item}
            for index, item in enumerate(whole["output"])
            for step in ("added", "done")
        ]
        events: list[Json] = [{"type": "response.created", "response": begun}, *items]
        events.append({"type": "response.completed", "response": whole})
        return [event | {"sequence_number": place} for place, event in enumerate(events)]

    def _items(self, answer: Answer, number: int) -> list[Json]:
        if isinstance(answer, Say):
            content: Json = {"type": "output_text", "text": answer.text, "annotations": []}
            text = {"type": "message", "role": "assistant", "content": [content]}
            return [{"id": f"msg_{number}", "status": "completed", **text}]
        return [self._call(call, f"{number}_{index}") for index, call in enumerate(answer)]

    def _call(self, call: Call, name: str) -> Json:
        # Tools of MCP servers are in namespaces.
        space, _, tool = call.tool.rpartition("/")
        item = {"id": f"item_{name}", "call_id": f"call_{name}", "name": tool, "status": "completed"}
        item |= {"namespace": space} if space else {}
        if isinstance(call.arguments, str):
            return item | {"type": "custom_tool_call", "input": call.arguments}
        return item | {"type": "function_call", "arguments": json.dumps(call.arguments)}


class Gemini:
    """Google's generateContent."""

    def heard(self, body: Json) -> Heard:
        parts = [(each.get("role"), part) for each in body.get("contents", []) for part in each.get("parts", [])]
        return Heard(
            tuple(function["name"] for tool in _tools(body) for function in tool.get("functionDeclarations", [])),
            tuple(text_of(part["functionResponse"]["response"]) for _, part in parts if "functionResponse" in part),
            tuple(part["text"] for role, part in parts if role == "model" and "text" in part),
        )

    def whole(self, answer: Answer, number: int) -> Json:
        if isinstance(answer, Say):
            parts: list[Json] = [{"text": answer.text}]
        else:
            parts = [
                {"functionCall": {"id": f"call_{number}_{index}", "name": call.tool, "args": call.arguments}}
                for index, call in enumerate(answer)
            ]
        usage = {"promptTokenCount": TOKENS, "candidatesTokenCount": TOKENS, "totalTokenCount": 2 * TOKENS}
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}

    def events(self, answer: Answer, number: int) -> list[Json]:
        return [self.whole(answer, number)]


def text_of(value: Any) -> str:
    """Every text in a value, in order, one after the other."""
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in cast("Json", value).items():
            if name != "type":
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _texts(inner)


def _tools(body: Json) -> list[Json]:
    return body.get("tools") or []


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _either(answer: Answer, said: str, called: str) -> str:
    return said if isinstance(answer, Say) else called
