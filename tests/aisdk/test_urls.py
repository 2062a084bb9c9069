"""Addresses as Node 20's `URL` writes them; None for those that it refuses."""

from __future__ import annotations

import pytest

from turnlog.aisdk.urls import normalize_url
from turnlog.errors import ConversionError

ADDRESSES = (
    ("https://example.org", "https://example.org/"),
    ("HTTPS://Example.ORG:443/a/../b c?q=ü d#f g", "https://example.org/b%20c?q=%C3%BC%20d#f%20g"),
    ("http://user:pw@h:8080/./x", "http://user:pw@h:8080/x"),
    ("http://u:p:q@h/", "http://u:p%3Aq@h/"),
    ("http://@h/", "http://h/"),
    ("http://u:@h", "http://u@h/"),
    ("http://a@b@h/", "http://a%40b@h/"),
    ("http://a[b]:c'd@h/x", "http://a%5Bb%5D:c'd@h/x"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://256.1.1.1/", None),
    ("http://1.2.3.4./x", "http://1.2.3.4/x"),
    ("http://999999999999/", None),
    ("http://[::1]:0080/a", "http://[::1]/a"),
    ("http://[1:0:0:0:0:0:0:1]/", "http://[1::1]/"),
    ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
    ("http://[::1/", None),
    ("http://h:65536/", None),
    ("http://h:x/", None),
    ("http://h:/x", "http://h/x"),
    ("http://a b/", None),
    ("http://a%20b/", None),
    ("http://%41.com/", "http://a.com/"),
    ("http://a<b/", None),
    ("http://faß.de/", "http://xn--fa-hia.de/"),
    ("http://Bücher.DE/", "http://xn--bcher-kva.de/"),
    ("http://Ⅷ.com/", "http://viii.com/"),
    ("http://ex\u00adample.org/", "http://example.org/"),
    ("http:\\\\h\\x\\..\\y", "http://h/y"),
    ("https:h/x", "https://h/x"),
    ("https:///h", "https://h/"),
    ("http://h?q='x'#`", "http://h/?q=%27x%27#%60"),
    ("http://h/%2e%2E/y?#", "http://h/y?#"),
    ("http://h/a\ud83d", "http://h/a%EF%BF%BD"),
    ("ftp://h:21/{x}", "ftp://h/%7Bx%7D"),
    ("ws://h:80/x", "ws://h/x"),
    ("wss://h/a\\b", "wss://h/a/b"),
    ("file:///C:/../x", "file:///C:/x"),
    ("file:c:\\x", "file:///c:/x"),
    ("file:/a/../b", "file:///b"),
    ("file://LOCALHOST/x", "file:///x"),
    ("file://h/a b", "file://h/a%20b"),
    ("gs://bucket/a/../b c", "gs://bucket/b%20c"),
    ("gs://U:p@B:0080\\x", None),
    ("gs://h", "gs://h"),
    ("gs://a<b/x", None),
    ("gs:/a/../b", "gs:/b"),
    ("x:/.//p", "x:/.//p"),
    ("urn:x:a bé", "urn:x:a b%C3%A9"),
    ("data:,a b#c d", "data:,a b#c%20d"),
    ("data:text/plain,x<y>", "data:text/plain,x<y>"),
    ("blob:https://h/x", "blob:https://h/x"),
    (" https://h/\tx \n", "https://h/x"),
    ("1a:x", None),
    ("//h/x", None),
    ("img.png", None),
    ("https://", None),
    ("", None),
)


@pytest.mark.parametrize(("address", "written"), ADDRESSES)
def test_addresses(address: str, written: str | None) -> None:
    if written is None:
        with pytest.raises(ConversionError):
            normalize_url(address)
    else:
        assert normalize_url(address) == written
