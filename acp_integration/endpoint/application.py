"""The endpoint as a whole ASGI application, for a server of its own: its path, its health answer, nothing else."""

from acp_integration.endpoint.asgi import AcpEndpoint
from acp_integration.endpoint.exchange import Exchange, Receive, Refusal, Scope, Send


class EndpointApplication:
    """Serves an endpoint on its path, with and without a trailing slash, and its health answer on ``<path>/health``."""

    def __init__(self, endpoint: AcpEndpoint) -> None:
        self.endpoint = endpoint
        self._path = "/" + endpoint.options.path.strip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope; another path is 404."""
        if scope["type"] == "lifespan":
            await self.endpoint(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/") or "/"
        if path == self._path:
            await self.endpoint(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif path == f"{self._path.rstrip('/')}/health" and scope["method"] in ("GET", "HEAD"):
            await self.endpoint.health(scope, receive, send)
        else:
            await Exchange(scope, receive, send).refuse(Refusal(404, "Not found"))
