"""JSON in, structs out: the params of every method and the result of every request, by method name."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from acp_integration.wire import agent, client, mcp, methods
from acp_integration.wire.repair import Malformed, choose, describe, repair


class InvalidParams(Malformed):
    """The params of a request or notification are not those of its method; its text is fit for the peer."""


class InvalidResult(Malformed):
    """The result a peer answered with is not that of the method it was asked for."""


_FAILURES: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

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
    methods.SESSION_UPDATE: client.SessionNotification,
    methods.SESSION_REQUEST_PERMISSION: client.RequestPermissionRequest,
    methods.FS_READ_TEXT_FILE: client.ReadTextFileRequest,
    methods.FS_WRITE_TEXT_FILE: client.WriteTextFileRequest,
    methods.TERMINAL_CREATE: client.CreateTerminalRequest,
    methods.TERMINAL_OUTPUT: client.TerminalOutputRequest,
    methods.TERMINAL_WAIT_FOR_EXIT: client.WaitForTerminalExitRequest,
    methods.TERMINAL_KILL: client.KillTerminalRequest,
    methods.TERMINAL_RELEASE: client.ReleaseTerminalRequest,
    methods.ELICITATION_CREATE: client.CreateElicitationRequest,
    methods.ELICITATION_COMPLETE: client.CompleteElicitationNotification,
}
"""The struct of each method's params; the same on both sides where both sides receive it."""

RESULTS: Final[Mapping[str, Any]] = {
    methods.INITIALIZE: agent.InitializeResponse,
    methods.AUTHENTICATE: agent.AuthenticateResponse,
    methods.LOGOUT: agent.LogoutResponse,
    methods.SESSION_NEW: agent.NewSessionResponse,
    methods.SESSION_LOAD: agent.LoadSessionResponse,
    methods.SESSION_RESUME: agent.ResumeSessionResponse,
    methods.SESSION_LIST: agent.ListSessionsResponse,
    methods.SESSION_CLOSE: agent.CloseSessionResponse,
    methods.SESSION_DELETE: agent.DeleteSessionResponse,
    methods.SESSION_FORK: agent.ForkSessionResponse,
    methods.SESSION_PROMPT: agent.PromptResponse,
    methods.SESSION_SET_MODE: agent.SetSessionModeResponse,
    methods.SESSION_SET_CONFIG_OPTION: agent.SetSessionConfigOptionResponse,
    methods.PROVIDERS_LIST: agent.ListProvidersResponse,
    methods.PROVIDERS_SET: agent.SetProviderResponse,
    methods.PROVIDERS_DISABLE: agent.DisableProviderResponse,
    methods.MCP_CONNECT: mcp.ConnectMcpResponse,
    methods.MCP_MESSAGE: Any,
    methods.MCP_DISCONNECT: mcp.DisconnectMcpResponse,
    methods.SESSION_REQUEST_PERMISSION: client.RequestPermissionResponse,
    methods.FS_READ_TEXT_FILE: client.ReadTextFileResponse,
    methods.FS_WRITE_TEXT_FILE: client.WriteTextFileResponse,
    methods.TERMINAL_CREATE: client.CreateTerminalResponse,
    methods.TERMINAL_OUTPUT: client.TerminalOutputResponse,
    methods.TERMINAL_WAIT_FOR_EXIT: client.WaitForTerminalExitResponse,
    methods.TERMINAL_KILL: client.KillTerminalResponse,
    methods.TERMINAL_RELEASE: client.ReleaseTerminalResponse,
    methods.ELICITATION_CREATE: client.CreateElicitationResponse,
}
"""The struct of each request's result; an MCP message is answered with any JSON value."""


def decode_params(method: str, raw: bytes | msgspec.Raw) -> Any:
    """The params of a request or notification as the struct of its method (`PARAMS`).

    Null counts as an empty object. Raises InvalidParams, and KeyError for a method that is not in `PARAMS`.
    """
    decoder = _params_decoder(method)
    try:
        return decoder.decode(raw)
    except _FAILURES:
        try:
            return _decode_slowly(raw, decoder.type, "params")
        except Malformed as error:
            raise InvalidParams(error.path, error.problem) from None


def decode_result(method: str, raw: bytes | msgspec.Raw) -> Any:
    """The result of a request as the struct of its method (`RESULTS`).

    Null counts as an empty object. Raises InvalidResult, and KeyError for a method that is not in `RESULTS`.
    """
    decoder = _result_decoder(method)
    try:
        return decoder.decode(raw)
    except _FAILURES:
        try:
            return _decode_slowly(raw, decoder.type, "result")
        except Malformed as error:
            raise InvalidResult(error.path, error.problem) from None


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
    except _FAILURES:
        pass
    try:
        return msgspec.json.decode(_without_lone_surrogates(raw))
    except (ValueError, RecursionError):
        raise Malformed(root, "is nested too deeply, is not UTF-8 or holds a number out of range") from None


def _without_lone_surrogates(raw: bytes) -> str:
    """The same JSON with U+FFFD where an escape names half a character."""
    text = json.dumps(json.loads(raw), ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@cache
def _params_decoder(method: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(PARAMS[method], dec_hook=choose)


@cache
def _result_decoder(method: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(RESULTS[method], dec_hook=choose)
