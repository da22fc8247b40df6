"""What a wheel has otherwise than the checkout: the page's modules bundled, few and small."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ESBUILD = ".venv/node/node_modules/.bin/esbuild"
#: What a page loads.
ENTRIES = ("app.js", "inbox-worker.js", "styles.css")
#: What is loaded by its address, or by a module of the user's own: it stays one file, that the entries import, too.
ALONE = ("client.js", "renderers.js", "signin.js")


class BundlePage(BuildHookInterface[Any]):
    """Bundles where esbuild is installed (`make setup`); else the wheel has the modules as they are, which work too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        web, esbuild = Path(self.root, "src/timbal/web"), Path(self.root, ESBUILD)
        if version == "editable" or not esbuild.is_file():
            return
        built = Path(mkdtemp(prefix="timbal-page-"))
        options = ["--minify", "--target=es2022", "--charset=utf8", "--legal-comments=none", "--log-level=warning"]
        bundle = ["--bundle", "--format=esm", *(f"--external:./{name}" for name in ALONE)]
        entries = [str(web / name) for name in ENTRIES]
        subprocess.run([esbuild, *entries, *options, *bundle, f"--outdir={built}"], check=True)
        alone = [str(web / name) for name in ALONE]
        subprocess.run([esbuild, *alone, *options, f"--outdir={built}"], check=True)
        self.build_config.target_config["exclude"] = ["/src/timbal/web/**/*.js", "/src/timbal/web/*.css"]
        build_data["force_include"].update({str(path): f"timbal/web/{path.name}" for path in built.iterdir()})
