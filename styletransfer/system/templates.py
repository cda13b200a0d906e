"""Pages made of templates."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(package: str) -> Environment:
    """Return the files in `templates/` of a package; what they show is escaped, and must be there.

    Args:
        package: such as "styletransfer.commands.explain".
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
