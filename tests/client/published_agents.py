"""Tries agents as their authors publish them, without any credentials; name packages, or try those listed here.

No test: it downloads. Each agent must answer `initialize`, and later say clearly that it wants authentication.
"""

import asyncio
import os
import sys

from acp_integration.client.doctor import Finding, examine
from acp_integration.settings import AcpClientSettings

PACKAGES = {
    "@agentclientprotocol/claude-agent-acp": (),
    "@zed-industries/codex-acp": (),
    "@google/gemini-cli": ("--acp",),
    "@qwen-code/qwen-code": ("--acp",),
}
KEPT = ("PATH", "HOME", "TMPDIR", "npm_config_registry", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "HTTP_PROXY")


def settings_for(package: str) -> AcpClientSettings:
    stdio = {"command": "npx", "args": ["-y", package, *PACKAGES.get(package, ())], "inherit-environment": False}
    environ = {name: os.environ[name] for name in KEPT if name in os.environ}
    mapping = {"initialize-timeout": "5m", "transport": {"stdio": {**stdio, "env": environ}}}
    return AcpClientSettings.from_mapping(mapping, prefix="")


async def try_agent(package: str) -> bool:
    print(f"== {package}")
    found: list[Finding] = []
    async for finding in examine(settings_for(package), prompt="hi"):
        print(finding)
        found.append(finding)
    initialized = any(finding.step == "initialize" and finding.ok for finding in found)
    told = any(not finding.ok and "authentica" in finding.text.lower() for finding in found)
    return initialized and told


async def main() -> int:
    return 0 if all([await try_agent(package) for package in sys.argv[1:] or PACKAGES]) else 1


sys.exit(asyncio.run(main()))
