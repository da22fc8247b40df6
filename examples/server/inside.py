"""The same routes inside an application of your own. Run it with: uvicorn inside:app"""

from fastapi import FastAPI

from timbal import Tool, suspend
from timbal.server import lifespan, router


def deploy(version: str) -> str:
    """Deploy a version, when somebody says so."""
    if not suspend({"question": f"Deploy {version}?"}, kind="confirm", response_type=bool):
        return "left as it was"
    return f"{version} is live"


api = router(Tool(deploy), store="sqlite:///inside.db")
app = FastAPI(lifespan=lifespan(api))
app.include_router(api, prefix="/ai")


@app.get("/hello")
async def hello() -> dict[str, str]:
    """A route of your own."""
    return {"hello": "world"}
