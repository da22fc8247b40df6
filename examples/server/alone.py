"""A server of its own. Run it with: uvicorn alone:app"""

from timbal import Tool, suspend
from timbal.server import create_app


def deploy(version: str) -> str:
    """Deploy a version, when somebody says so."""
    if not suspend({"question": f"Deploy {version}?"}, kind="confirm", response_type=bool):
        return "left as it was"
    return f"{version} is live"


app = create_app(Tool(deploy), store="sqlite:///alone.db")
