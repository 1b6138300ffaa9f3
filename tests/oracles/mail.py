"""What the standard library alone makes of a message: slow, and only where the message is sound."""

import email
import re
from email.header import decode_header, make_header


def header_lines(raw):
    """Header lines of ASCII messages, encoded words decoded, without white space.

    The standard library puts a space between an encoded word and what it touches.
    """
    return [(name, "".join(_decoded(str(value)).split()))
            for name, value in email.message_from_bytes(raw).items()]


def _decoded(value):
    # What is declared as the smaller charset is read as the larger one.
    unfolded = re.sub("iso-8859-1[?]", "windows-1252?", "".join(value.splitlines()), flags=re.I)
    return str(make_header(decode_header(unfolded))) if "=?" in unfolded else unfolded


def plain_body(raw):
    """The text parts, one after the other; None where there is more to it than that."""
    message = email.message_from_bytes(raw)
    leaves = [part for part in message.walk() if not part.is_multipart()]
    attached = any(part.get_content_disposition() == "attachment" for part in message.walk())
    if attached or any(part.defects for part in message.walk()) or not all(map(_simple, leaves)):
        return None
    texts = [_text(leaf) for leaf in leaves]
    if not message.is_multipart():
        return texts[0]
    return "\n".join(text for text in texts if text.strip())


def _simple(part):
    return part.get_content_type() == "text/plain" and part.get_filename() is None


def _text(part):
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode(part.get_content_charset("utf-8")).replace("\r\n", "\n")
