"""A parser that collects the tags and the text of an HTML page."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Tags parses a page: `seen` holds (tag, attributes) in order, `text` the page's text."""

    def __init__(self, page):
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.cdata_elem is None:  # neither style nor script
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]

    def values(self, name):
        """Return the values of attribute `name` of all tags that have the attribute."""
        return [attributes[name] for _, attributes in self.seen if name in attributes]
