"""Static files under names that carry their hash, imported modules included."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # untyped package
    """Also rewrites the imports inside ES modules, so that an upgrade never mixes old modules with new ones."""

    support_js_module_import_aggregation = True
