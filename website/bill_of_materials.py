"""What a release is made of, as a CycloneDX document: `make sbom` writes it into `.build`.

It lists the packages that `requirements/runtime.lock` pins, and those whose code the page bundles, with the licences
that they name themselves.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final

from packageurl import PackageURL

import turnlog

# The decorators of its classes hide their types.
_model: Any = import_module("cyclonedx.model")
_component: Any = import_module("cyclonedx.model.component")
Bom: Any = import_module("cyclonedx.model.bom").Bom
JsonV1Dot6: Any = import_module("cyclonedx.output.json").JsonV1Dot6
_LICENCES: Any = import_module("cyclonedx.contrib.license.factories").LicenseFactory()

ROOT: Final = Path(__file__).parent.parent


def bill_of_materials() -> Any:
    """The document. Components depend on nothing here: all of them are turnlog's."""
    bom = Bom()
    own = _component.Component(
        name="turnlog",
        version=turnlog.__version__,
        type=_component.ComponentType.APPLICATION,
        licenses=[_LICENCES.make_from_string("Apache-2.0 AND MIT AND ISC AND BSD-3-Clause AND Unlicense")],
        purl=PackageURL("pypi", name="turnlog", version=turnlog.__version__),
        bom_ref="turnlog",
    )
    bom.metadata.component = own
    components = [*python_components(), *page_components()]
    for each in components:
        bom.components.add(each)
    bom.register_dependency(own, components)
    return bom


def python_components() -> Iterator[Any]:
    """The packages that turnlog needs to run, with the hashes of their files."""
    text = (ROOT / "requirements" / "runtime.lock").read_text().replace("\\\n", " ")
    for name, version, rest in re.findall(r"^([a-z0-9-]+)==(\S+)(.*)$", text, re.MULTILINE):
        marker = re.search(r";\s*(.*?)\s+--hash", rest)
        yield _component.Component(
            name=name,
            version=version,
            type=_component.ComponentType.LIBRARY,
            purl=PackageURL("pypi", name=name, version=version),
            licenses=[_LICENCES.make_from_string(licence)] if (licence := _licence(name)) else (),
            hashes=[
                _model.HashType(alg=_model.HashAlgorithm.SHA_256, content=each)
                for each in re.findall(r"sha256:([0-9a-f]{64})", rest)
            ],
            properties=[_model.Property(name="turnlog:only-where", value=marker[1])] if marker else (),
            bom_ref=f"pypi:{name}",
        )


def _licence(name: str) -> str | None:
    try:
        found = metadata(name)
    except PackageNotFoundError:  # for other systems
        return None
    if expression := found.json.get("license_expression"):
        return str(expression)
    named = [
        line.rpartition(" :: ")[2] for line in found.get_all("Classifier") or [] if line.startswith("License :: OSI")
    ]
    text = str(found.json.get("license") or "")
    return " AND ".join(named) or (text if "\n" not in text else None) or None


def page_components() -> Iterator[Any]:
    """The packages whose code is in the page."""
    packages: dict[str, dict[str, Any]] = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    for path, package in packages.items():
        name = path.rpartition("node_modules/")[2]
        if name and not package.get("dev") and not package.get("optional"):
            group, _, short = name.rpartition("/")
            yield _component.Component(
                name=short,
                group=group or None,
                version=package["version"],
                type=_component.ComponentType.LIBRARY,
                purl=PackageURL("npm", namespace=group or None, name=short, version=package["version"]),
                licenses=[_LICENCES.make_from_string(package["license"])] if package.get("license") else (),
                bom_ref=f"npm:{path}",
            )


if __name__ == "__main__":
    sys.stdout.write(JsonV1Dot6(bill_of_materials()).output_as_string(indent=2) + "\n")
