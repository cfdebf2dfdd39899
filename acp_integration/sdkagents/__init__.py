"""Classes written for the official SDK, served unchanged: one instance for each connection."""

from acp_integration.sdkagents.shape import SdkAgentClass, is_sdk_agent

__all__ = ["SdkAgentClass", "is_sdk_agent"]
