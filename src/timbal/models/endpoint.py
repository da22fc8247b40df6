"""Where a model is and how to get in: from its name, what it was made with, and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from ..errors import ModelError

API = Literal["responses", "chat"]


class Provider(NamedTuple):
    """The environment variables of a provider: its keys, the first that is set counts, and its base URL."""

    keys: tuple[str, ...]
    base_url: str


PROVIDERS = {
    "openai": Provider(("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "anthropic": Provider(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    "google": Provider(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL"),
}

#: What servers that ask for no key are sent as one.
NO_KEY = "no-key"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model at one place. `api` is what is spoken there; `base_url` is None where the provider's own is meant."""

    provider: str
    model: str
    api: Literal["responses", "chat", "messages", "generate"]
    base_url: str | None
    api_key: str = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


def endpoint_of(
    name: str, base_url: str | None, api_key: str | None, api: API | None, environment: Mapping[str, str]
) -> Endpoint:
    """The endpoint of a model's name; raises `ModelError` where a key is missing, naming the variable to set."""
    provider, _, model = name.partition("/")
    variables = PROVIDERS[provider]
    base_url = base_url or environment.get(variables.base_url) or None
    api_key = api_key or next((environment[key] for key in variables.keys if environment.get(key)), None)
    if api_key is None and (base_url is None or provider != "openai"):
        also = " (or pass base_url= to a server that needs none)" if provider == "openai" else ""
        raise ModelError(
            f"{name} needs an API key: set {' or '.join(variables.keys)}, or pass Model({name!r}, api_key=...){also}"
        )
    return Endpoint(provider, model, _api(provider, base_url, api), base_url, api_key or NO_KEY)


def _api(
    provider: str, base_url: str | None, chosen: API | None
) -> Literal["responses", "chat", "messages", "generate"]:
    if provider == "anthropic":
        return "messages"
    if provider == "google":
        return "generate"
    if chosen is not None:
        return chosen
    host = "api.openai.com" if base_url is None else urlsplit(base_url).hostname or ""
    return "responses" if host == "api.openai.com" or host.endswith(".api.openai.com") else "chat"
