"""Finding the Java that Spark runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED = 17


def java_version() -> int | None:
    """The major version of the Java that Spark would use, or None."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else None


def why_no_spark() -> str | None:
    """Why Spark cannot run here, with the remedy; None if it can."""
    version = java_version()
    if version is None:
        problem = "Java is not installed"
    elif version < NEEDED:
        problem = f"Java {version} is too old"
    else:
        return None
    return (
        f"{problem}: Spark needs Java {NEEDED} or later. "
        "Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
        "then set JAVA_HOME if it is not found."
    )
