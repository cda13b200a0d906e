"""Adds addresses to the metadata of a built package: project links, and links in the README."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Pattern of a Markdown link to a file, not to an address or to a heading of the page itself.
LOCAL = re.compile(r"\]\((?!https?://|#)([^)]+)\)")
PICTURES = (".jpg", ".png", ".svg")


class Addresses(MetadataHookInterface):
    """Addresses fills in `urls` and `readme` from the `address` in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata in place; its version, already set, names the tag of the release."""
        address, tag = self.config["address"], f"v{metadata['version']}"
        metadata["urls"] = {
            "Repository": address,
            "Documentation": f"{address}/tree/{tag}/docs",
            "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{address}/issues",
        }
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")

        def absolute(link: re.Match[str]) -> str:
            kind = "raw" if link[1].endswith(PICTURES) else "blob"
            return f"]({address}/{kind}/{tag}/{link[1]})"

        metadata["readme"] = {"content-type": "text/markdown", "text": LOCAL.sub(absolute, text)}
