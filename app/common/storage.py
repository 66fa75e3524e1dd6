"""Static files under names that carry their hash, imported modules included."""

from whitenoise.storage import CompressedManifestStaticFilesStorage

_OURS = ("accounts", "chat", "common", "dashboard", "vendor")
"""Folders whose scripts import others: looking for that in other packages' bundles is most of what collecting takes."""
_IMPORTS = CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1]  # noqa: SLF001
"""What Django's `support_js_module_import_aggregation` looks for, in every script there is."""


class ModuleStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # untyped package
    """Also rewrites the imports inside our ES modules, so that an upgrade never mixes old modules with new ones."""

    patterns = (
        *CompressedManifestStaticFilesStorage.patterns,
        *((f"{folder}/*.js", _IMPORTS) for folder in _OURS),
    )
