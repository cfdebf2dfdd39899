"""JSON in, structs out: the params of every method and the result of every request, by method name."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from acp_integration.wire import agent, mcp, methods
from acp_integration.wire.repair import Malformed, choose, describe, repair


class InvalidParams(Malformed):
    """The params of a request or notification are not those of its method; its text is fit for the peer."""


PARAMS: Final[Mapping[str, Any]] = {
    methods.INITIALIZE: agent.InitializeRequest,
    methods.AUTHENTICATE: agent.AuthenticateRequest,
    methods.LOGOUT: agent.LogoutRequest,
    methods.SESSION_NEW: agent.NewSessionRequest,
    methods.SESSION_LOAD: agent.LoadSessionRequest,
    methods.SESSION_RESUME: agent.ResumeSessionRequest,
    methods.SESSION_LIST: agent.ListSessionsRequest,
    methods.SESSION_CLOSE: agent.CloseSessionRequest,
    methods.SESSION_DELETE: agent.DeleteSessionRequest,
    methods.SESSION_FORK: agent.ForkSessionRequest,
    methods.SESSION_PROMPT: agent.PromptRequest,
    methods.SESSION_SET_MODE: agent.SetSessionModeRequest,
    methods.SESSION_SET_CONFIG_OPTION: agent.SetSessionConfigOptionRequest,
    methods.SESSION_CANCEL: agent.CancelNotification,
    methods.PROVIDERS_LIST: agent.ListProvidersRequest,
    methods.PROVIDERS_SET: agent.SetProviderRequest,
    methods.PROVIDERS_DISABLE: agent.DisableProviderRequest,
    methods.MCP_CONNECT: mcp.ConnectMcpRequest,
    methods.MCP_MESSAGE: mcp.MessageMcpRequest,
    methods.MCP_DISCONNECT: mcp.DisconnectMcpRequest,
    methods.CANCEL_REQUEST: agent.CancelRequestNotification,
}
"""The struct of each method's params; the same on both sides where both sides receive it."""


def decode_params(method: str, raw: bytes | msgspec.Raw) -> Any:
    """The params of a request or notification as the struct of its method (`PARAMS`).

    Null counts as an empty object. Raises InvalidParams, and KeyError for a method that is not in `PARAMS`.
    """
    decoder = _params[method]
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _decode_slowly(raw, decoder.type, "params")
    except Malformed as error:
        raise InvalidParams(error.path, error.problem) from None


def _decode_slowly(raw: bytes | msgspec.Raw, expected: Any, root: str) -> Any:
    value = _plain(bytes(raw), root)
    cleaned = repair({} if value is None else value, describe(expected), root)
    try:
        return msgspec.convert(cleaned, expected, dec_hook=choose)
    except (msgspec.ValidationError, RecursionError):
        raise Malformed(root, "has not the form of its method") from None


def _plain(raw: bytes, root: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return msgspec.json.decode(_without_lone_surrogates(raw))
    except (ValueError, RecursionError):
        raise Malformed(root, "is nested too deeply, is not UTF-8 or holds a number out of range") from None


def _without_lone_surrogates(raw: bytes) -> str:
    """The same JSON with U+FFFD where an escape names half a character."""
    text = json.dumps(json.loads(raw), ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _decoders(types: Mapping[str, Any]) -> Mapping[str, msgspec.json.Decoder[Any]]:
    return {method: msgspec.json.Decoder(expected, dec_hook=choose) for method, expected in types.items()}


_params: Final = _decoders(PARAMS)
