"""What search engines, feed readers and data portals harvest: sitemap, Atom feed, DCAT-AP catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from app.domain.cube import Texts, text_in
from app.domain.publication import Contact
from app.domain.texts import printable
from app.web.contents import Contents, SheetEntry
from app.web.formats.registry import Format, formats_for
from app.web.locate import write_moment

ATOM = "application/atom+xml; charset=utf-8"
SITEMAP = "application/xml; charset=utf-8"
TURTLE = "text/turtle; charset=utf-8"
JSON_LD = "application/ld+json"

_LANGUAGES = "http://publications.europa.eu/resource/authority/language/"
_FILE_TYPES = "http://publications.europa.eu/resource/authority/file-type/"
_MEDIA_TYPES = "https://www.iana.org/assignments/media-types/"
_THREE_LETTERS = {"en": "ENG", "es": "SPA", "ca": "CAT"}
_PREFIXES = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def sitemap(contents: Contents, base: str, queries: bool) -> bytes:
    """Every page in every language, with its twins in the others; ``queries``: readers may ask their own."""
    xhtml = "http://www.w3.org/1999/xhtml"
    ET.register_namespace("", "http://www.sitemaps.org/schemas/sitemap/0.9")
    ET.register_namespace("xhtml", xhtml)
    name = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    root = ET.Element(f"{name}urlset")
    languages = contents.catalogue.languages
    for path in (*_paths(contents), *(["query"] if queries else [])):
        for language in languages:
            url = ET.SubElement(root, f"{name}url")
            ET.SubElement(url, f"{name}loc").text = f"{base}/{language}/{path}"
            ET.SubElement(url, f"{name}lastmod").text = contents.catalogue.released.date().isoformat()
            for other in languages:
                ET.SubElement(
                    url, f"{{{xhtml}}}link", rel="alternate", hreflang=other, href=f"{base}/{other}/{path}"
                )
    return _xml(root)


def feed(contents: Contents, language: str, base: str) -> bytes:
    """The tables of the live release, as an Atom feed (RFC 4287)."""
    catalogue = contents.catalogue
    ET.register_namespace("", "http://www.w3.org/2005/Atom")
    name = "{http://www.w3.org/2005/Atom}"
    root = ET.Element(f"{name}feed", {"xml:lang": language})
    updated = _moment(contents)

    def say(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> None:
        element = ET.SubElement(parent, name + tag, attributes)
        element.text = text or None

    say(root, "id", f"{base}/{language}/")
    say(root, "title", text_in(catalogue.title, language))
    say(root, "updated", updated)
    say(root, "link", href=f"{base}/{language}/")
    say(root, "link", rel="self", type="application/atom+xml", href=f"{base}/{language}/feed.atom")
    author = ET.SubElement(root, f"{name}author")
    say(author, "name", text_in(catalogue.publisher, language) or text_in(catalogue.title, language))
    # RFC 4151: a sheet of a release keeps its name wherever the site is moved to or read from.
    name_of = f"tag:{_host(base)},{catalogue.released.date()}:{quote(catalogue.release_id)}"
    for entry in contents.root.walk():
        item = ET.SubElement(root, f"{name}entry")
        address = f"{base}/{language}/s/{quote(entry.sheet.id)}"
        say(item, "id", f"{name_of}/{language}/{quote(entry.sheet.id)}")
        say(item, "title", f"{entry.number} {text_in(entry.sheet.title, language)}".strip())
        say(item, "updated", updated)
        say(item, "link", href=address)
        if notes := text_in(entry.sheet.notes, language):
            say(item, "summary", notes)
    return _xml(root)


def dataset_document(contents: Contents, entry: SheetEntry, language: str, base: str) -> str:
    """A sheet as a schema.org Dataset, for search engines."""
    catalogue = contents.catalogue
    sheet = entry.sheet
    title = text_in(sheet.title, language)
    about = text_in(catalogue.description, language)
    document = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": title,
        "description": text_in(sheet.notes, language) or f"{title}. {about}",
        "url": f"{base}/{language}/s/{quote(sheet.id)}",
        "inLanguage": language,
        "datePublished": catalogue.released.date().isoformat(),
        "version": catalogue.release_id,
        "isAccessibleForFree": True,
        "creator": {
            "@type": "Organization",
            "name": text_in(catalogue.publisher, language),
            **_contact_point(catalogue.contact_of(sheet), language),
        },
        "includedInDataCatalog": {
            "@type": "DataCatalog",
            "name": text_in(catalogue.title, language),
            "url": f"{base}/{language}/",
        },
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": form.kind, "contentUrl": address}
            for form, address in _downloads(entry, language, base)
        ],
    }
    return _in_script(document)


def _contact_point(contact: Contact, language: str) -> dict[str, Any]:
    """Whom to ask, as schema.org says it of an organization."""
    said = {
        "name": text_in(contact.name, language),
        "email": contact.email,
        "telephone": contact.phone,
        "url": contact.page,
    }
    point = {name: text for name, text in said.items() if text}
    return {"contactPoint": {"@type": "ContactPoint", **point}} if contact else {}


def catalogue_jsonld(contents: Contents, base: str) -> bytes:
    """The DCAT-AP catalogue as JSON-LD."""
    context = {**_PREFIXES, "type": "@type", "id": "@id"}
    nodes = [{"id": subject, **properties} for subject, properties in _graph(contents, base)]
    return json.dumps({"@context": context, "@graph": nodes}, ensure_ascii=False, indent=1).encode()


def catalogue_turtle(contents: Contents, base: str) -> bytes:
    """The DCAT-AP catalogue as Turtle."""
    lines = [f"@prefix {name}: <{address}> ." for name, address in _PREFIXES.items()]
    for subject, properties in _graph(contents, base):
        said = [
            f"    {'a' if name == 'type' else name} {', '.join(map(_turtle, values))}"
            for name, value in properties.items()
            if (values := value if isinstance(value, list) else [value])
        ]
        lines += ["", f"<{_iri(subject)}>", " ;\n".join(said) + " ."]
    return ("\n".join(lines) + "\n").encode()


def _graph(contents: Contents, base: str) -> Iterator[tuple[str, dict[str, Any]]]:
    catalogue = contents.catalogue
    first = catalogue.languages[0]
    office = f"{base}/#publisher"
    moment = {"@value": _moment(contents), "@type": "xsd:dateTime"}
    spoken = [{"id": _LANGUAGES + _THREE_LETTERS[c]} for c in catalogue.languages if c in _THREE_LETTERS]
    entries = list(contents.root.walk())
    yield (
        f"{base}/catalog",
        {
            "type": "dcat:Catalog",
            "dct:title": _texts(catalogue.title),
            "dct:description": _texts(catalogue.description) or _texts(catalogue.title),
            "dct:publisher": {"id": office},
            "dct:language": spoken,
            "dct:modified": moment,
            "foaf:homepage": {"id": f"{base}/{first}/"},
            "dcat:dataset": [{"id": f"{base}/{first}/s/{quote(e.sheet.id)}#dataset"} for e in entries],
        },
    )
    contacts: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in entries:
        contact = catalogue.contact_of(entry.sheet)
        if contact and repr(contact) not in contacts:
            subject = f"{base}/#contact{len(contacts) + 1}"
            contacts[repr(contact)] = subject, _vcard(contact, catalogue.publisher or catalogue.title)
    yield from contacts.values()
    yield office, {"type": "foaf:Organization", "foaf:name": _texts(catalogue.publisher or catalogue.title)}
    for entry in entries:
        page = f"{base}/{first}/s/{quote(entry.sheet.id)}"
        downloads = list(_downloads(entry, first, base))
        yield (
            f"{page}#dataset",
            {
                "type": "dcat:Dataset",
                "dct:title": _texts(entry.sheet.title),
                "dct:description": _texts(entry.sheet.notes) or _texts(entry.sheet.title),
                "dct:identifier": entry.sheet.id,
                "dct:publisher": {"id": office},
                "dcat:contactPoint": [
                    {"id": contacts[said][0]}
                    for said in [repr(catalogue.contact_of(entry.sheet))]
                    if said in contacts
                ],
                "dct:issued": moment,
                "dct:language": spoken,
                "dcat:landingPage": {"id": page},
                "dcat:distribution": [{"id": f"{address}#distribution"} for _, address in downloads],
            },
        )
        for form, address in downloads:
            yield (
                f"{address}#distribution",
                {
                    "type": "dcat:Distribution",
                    "dcat:accessURL": {"id": page},
                    "dcat:downloadURL": {"id": address},
                    "dcat:mediaType": [{"id": _MEDIA_TYPES + form.kind}] if form.registered else [],
                    "dct:format": [{"id": _FILE_TYPES + form.file_type}] if form.file_type else [],
                },
            )


def _vcard(contact: Contact, office: Texts) -> dict[str, Any]:
    """Whom to ask, as DCAT-AP says it; the office, where it has no name of its own."""
    ways = {
        "vcard:hasEmail": contact.email and f"mailto:{quote(contact.email, safe='@')}",
        "vcard:hasTelephone": contact.phone and f"tel:{telephone(contact.phone)}",
        "vcard:hasURL": contact.page,
    }
    return {
        "type": "vcard:Organization",
        "vcard:fn": _texts(contact.name or office),
        **{name: {"id": address} for name, address in ways.items() if address},
    }


def telephone(number: str) -> str:
    """A number as links to it write it (RFC 3966)."""
    return "".join(c for c in number if c.isdigit() or c == "+")


def _downloads(entry: SheetEntry, language: str, base: str) -> Iterator[tuple[Format, str]]:
    for query in entry.sheet.queries:
        path = f"{base}/{language}/s/{quote(entry.sheet.id)}/{quote(query.id)}"
        for form in formats_for(query.view):
            yield form, f"{path}.{form.extension}"


def _paths(contents: Contents) -> Iterator[str]:
    yield ""
    yield "confidentiality"
    yield "api"
    waiting = list(contents.root.folders)
    while waiting:
        entry = waiting.pop(0)
        yield f"f/{quote(entry.folder.id)}"
        waiting[:0] = entry.folders
    for sheet in contents.sheets:
        yield f"s/{quote(sheet)}"


def _host(base: str) -> str:
    return urlsplit(base).hostname or "localhost"


def _moment(contents: Contents) -> str:
    return write_moment(contents.catalogue.released)


def _texts(texts: Texts) -> list[dict[str, str]]:
    return [{"@value": text, "@language": code} for code, text in texts.items() if text]


def _turtle(value: Any) -> str:
    if isinstance(value, str):
        return (
            value if value.startswith(("dcat:", "foaf:", "vcard:")) else json.dumps(value, ensure_ascii=False)
        )
    if "id" in value:
        return f"<{_iri(value['id'])}>"
    text = json.dumps(value["@value"], ensure_ascii=False)
    return f"{text}@{value['@language']}" if "@language" in value else f"{text}^^{value['@type']}"


def _iri(text: str) -> str:
    return "".join(c if c not in '<>"{}|^`\\' and ord(c) > 32 else f"%{ord(c):02X}" for c in text)


def _in_script(document: dict[str, Any]) -> str:
    """JSON that can't end the script element that holds it."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _xml(root: ET.Element) -> bytes:
    return (
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        + printable(ET.tostring(root, encoding="unicode")).encode()
    )
