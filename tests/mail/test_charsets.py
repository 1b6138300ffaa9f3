"""The charset of a text: its name in mail, or a guess from the bytes if there is no name."""

import codecs
import encodings
from pathlib import Path

import pytest

from textnb.mail import charset_guess
from textnb.mail.charset_guess import guess_codec, has_other_script, mail_name, take_sample
from textnb.mail.charset_names import codecs_of
from textnb.mail.message import parse_message

RUSSIAN = "Мороз и солнце; день чудесный! Ещё ты дремлешь, друг прелестный."
GREEK = "Σα βγεις στον πηγαιμό για την Ιθάκη, να εύχεσαι νάναι μακρύς ο δρόμος."
THAI = "อันความกรุณาปรานี จะมีใครบังคับก็หาไม่ หลั่งมาเองเหมือนฝนอันชื่นใจ"
HEBREW = "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו וחשך על פני תהום"
ARABIC = "أنا الذي نظر الأعمى إلى أدبي وأسمعت كلماتي من به صمم أنام ملء جفوني"
CHINESE = "又一次来到东胜海天酒店，比第一次的感觉更温馨，更舒适，嗯，很不错。早餐也很好。"
TAIWANESE = "改善掉髮，預防禿頭的最佳選擇，純天然植物精華萃取，並經人體測試通過，絕無副作用。"
JAPANESE = "いつもお世話になっております。ご注文の商品は本日発送いたしましたので、ご確認ください。"
KOREAN = "안녕하세요. 주문하신 상품은 오늘 발송되었습니다. 자세한 내용은 아래를 확인해 주세요."
WESTERN = ("Größe überschreitet erlaubtes Maximum für Löschen", "déjà vu à l’hôtel où l’été",
           "Configuração não disponível: ação", "Årets høst på Øresund – smørrebrød",
           "CORREÇÃO DAS AÇÕES", "¡Año nuevo! ¿Qué tal, señor?", "“quoted” — and ‘so’ …",
           "\xa0\xa0\xa0 * * * \xa0\xa0\xa0", "••••••••••", "Türkiye’de açıldı".replace("ı", "i"))
OTHERS = [
    (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r"), (GREEK, "cp1253"), (THAI, "cp874"),
    (HEBREW, "cp1255"), (ARABIC, "cp1256"), (CHINESE, "gb18030"), (TAIWANESE, "big5"),
    (JAPANESE, "cp932"), (JAPANESE, "euc_jp"), (KOREAN, "cp949"),
]


# Names


@pytest.mark.parametrize(("name", "codec"), [
    ("gb_2312-80", "gb18030"), ("x-gbk", "gb18030"), ("x-sjis", "cp932"),
    ("x-euc-jp", "euc_jp"), ("windows-874", "cp874"), ("iso-8859-8-i", "iso8859-8"),
    ("x-mac-cyrillic", "mac-cyrillic"), ("dos-874", "cp874"), ("charset=GB2312", "gb18030"),
    ("GB2312_CHARSET", "gb18030"), ("CHINESEBIG5", "big5"), ("3D\"Windows-1252", "cp1252"),
    ("'utf-8'", "utf-8"), ("utf-8; format=flowed", "utf-8"), ("UTF8MB4", "utf-8"),
    ("windows1251", "cp1251"), ("WIN-1251", "cp1251"), ("x-cp1250", "cp1250"),
    ("ks_c_5601-1987", "cp949"), ("euc-kr", "cp949"), ("shift_jis", "cp932"),
    ("iso-8859-1", "cp1252"), ("ISO8859_9", "cp1254"), ("iso-8859-11", "cp874"),
    ("cp28592", "iso8859-2"), ("big5-hkscs", "big5hkscs"), ("hz-gb-2312", "hz"),])
def test_a_name_has_a_codec(name, codec):
    codecs = codecs_of(name)
    assert codecs is not None
    assert codecs[0] == codec


# Each line has a codec of Python and its labels in the Encoding Standard of the WHATWG.
# Python can't decode ISO-2022-CN; the standard itself decodes neither it, nor ISO-2022-KR and HZ.
LABELS = (Path(__file__).parent / "web_labels.txt").read_text().splitlines()


@pytest.mark.parametrize("line", LABELS, ids=lambda line: line.partition(":")[0])
def test_the_labels_of_the_web(line):
    codec, labels = line.split(": ")
    codec_of = {label: (codecs_of(label) or ("none",))[0] for label in labels.split()}
    assert {label: name for label, name in codec_of.items() if name != codec} == {}


@pytest.mark.parametrize("name", ["", "us-ascii", "ANSI_X3.4-1968", "unknown-8bit", "x-unknown",
                                  "charset=", "646"])
def test_names_of_no_charset(name):
    assert codecs_of(name) == ()


@pytest.mark.parametrize("name", ["DEFAULT", "none-such", "rot13", "zip", "punycode", "../etc",
                                  "é", "x" * 99, "iso-8859-99", "cp99999"])
def test_unknown_names(name):
    assert codecs_of(name) is None


def test_made_up_names_take_no_memory():
    """Python keeps each name for ever that it has looked up."""
    before = len(encodings._cache)
    for number in range(50):
        parse_message(f"Subject: =?made{number}?q?x?=\nContent-Disposition: x; "
                      f"filename*=up{number}''x\nContent-Type: x/y; charset=so{number}.1\n\nx"
                      .encode())
    assert len(encodings._cache) == before


def test_a_name_is_shown_as_mail_writes_it():
    assert list(map(mail_name, ("cp1251", "cp874", "koi8_u", "iso8859-2", "cp932"))) == [
        "windows-1251", "windows-874", "koi8-u", "iso-8859-2", "shift_jis"]


def test_every_candidate_is_a_codec_of_both_libraries():
    from charset_normalizer import from_bytes

    for codec in charset_guess._SCRIPTS:
        assert codecs.lookup(codec)
        # An unknown name raises there.
        from_bytes(b"x", cp_isolation=[codec])


# Texts


UNDECLARED = "charset not declared: read as windows-1252"
CUT_OFF = CHINESE.rstrip("。"), KOREAN.rstrip(".")


@pytest.mark.parametrize(("charset", "body", "text", "errors"), [
    ("iso-8859-1", b"\x93caf\xe9\x94", "“café”", ()),
    ("'utf-8'", "café".encode(), "café", ()), ("utf-16", "café".encode("utf-16"), "café", ()),
    ("us-ascii", "café".encode(), "café", ()),
    ("us-ascii", b"caf\xe9", "café", (UNDECLARED,)),
    ("unknown-8bit", b"caf\xe9", "café", (UNDECLARED,)),
    ("big5", b"a\xff", "aÿ", ("charset not as declared: big5, read as windows-1252",)),
    ("big5", "中文字母".encode("big5") + b"\xff", "中文字母\ufffd",
     ("undecodable bytes replaced: big5",)),
    ("gb2312", "中文字".encode(), "中文字", ("charset not as declared: gb2312, read as utf-8",)),
    ("utf-8", RUSSIAN[:30].encode("cp1251"), RUSSIAN[:30],
     ("charset not as declared: utf-8, guessed windows-1251",)),
    ("utf-7", b"+2AA-", "\ufffd", ("undecodable bytes replaced: utf-7",)),
    *((name, b"\\d", "\\d", (f"unknown charset: {name}",)) for name in (
        "rot13", "zip", "punycode", "unicode_escape", "x" * 99)),
    # Some charsets can be recognized by an escape sequence or a byte order mark.
    (None, JAPANESE.encode("iso2022_jp"), JAPANESE, ("charset not declared: read as iso-2022-jp",)),
    (None, JAPANESE.encode("utf-16"), JAPANESE, ("charset not declared: read as utf-16",)),
    # The text was cut off within a character.
    (None, RUSSIAN.encode() + b"\xd0", RUSSIAN + "\ufffd", ("undecodable bytes replaced: utf-8",)),
    (None, CUT_OFF[0].encode("gb18030")[:-1], CUT_OFF[0][:-1] + "\ufffd",
     ("charset not declared: guessed gb18030",)),
    (None, CUT_OFF[1].encode("cp949")[:-1], CUT_OFF[1][:-1] + "\ufffd",
     ("charset not declared: guessed euc-kr",))], ids=range(21))
def test_declared_and_undeclared_charsets(charset, body, text, errors):
    head = "Content-Transfer-Encoding: binary" if charset is None else (
        f'Content-Type: text/plain; charset="{charset}"')
    message = parse_message(f"{head}\n\n".encode() + body)
    assert (message.body, message.errors) == (text, errors)


@pytest.mark.parametrize(("text", "codec"), OTHERS)
def test_an_undeclared_charset_is_guessed_from_the_body_or_another_part(text, codec):
    message = parse_message(b"Subject: x\n\n" + text.encode(codec))
    assert message.body == text
    [error] = message.errors
    assert error.startswith("charset not declared: guessed ")
    # A short header is decoded with the charset of the body.
    raw = b"Subject: " + text[:4].encode(codec) + b"\n\n" + text.encode(codec)
    assert parse_message(raw).subject == text[:4].strip()
    # A header is decoded with the charset that the message declares elsewhere.
    raw = (f"Content-Type: text/plain; charset={codec}\nSubject: ".encode()
           + text[:9].encode(codec) + b"\n\n")
    message = parse_message(raw)
    assert message.subject == text[:9].strip()
    assert message.errors[0].endswith("as elsewhere in the message")


@pytest.mark.parametrize("text", WESTERN)
@pytest.mark.parametrize("times", [1, 30])
def test_western_text_is_windows_1252(text, times):
    text = " ".join([text] * times)
    message = parse_message(b"Subject: x\n\n" + text.encode("cp1252"))
    assert (message.body, message.errors) == (text, ("charset not declared: read as windows-1252",))


def test_western_words_beside_another_script():
    raw = b"From: Bj\xf6rn <b@example.org>\nSubject: caf\xe9\n\n" + CHINESE.encode("gb18030")
    message = parse_message(raw)
    assert (message.from_, message.subject, message.body) == (
        "Björn <b@example.org>", "café", CHINESE)
    raw = (b"Content-Type: text/plain; charset=iso-8859-9\nSubject: "
           + "çekilişini kaçırmayın".encode("cp1254") + b"\n\nx")
    assert parse_message(raw).subject == "çekilişini kaçırmayın"


@pytest.mark.parametrize("element", [
    "<meta charset='{}'>", '<META http-equiv=Content-Type content="text/html; charset={}">'])
@pytest.mark.parametrize(("declared", "meta", "text", "codec", "error"), [
    ("", "gb2312", CHINESE, "gb18030", ()),
    ("; charset=us-ascii", "koi8-r", RUSSIAN[:15], "koi8-r", ()),
    ("; charset=DEFAULT", "windows-1251", RUSSIAN[:15], "cp1251", ()),
    ("; charset=koi8-r", "windows-1251", RUSSIAN, "koi8-r", ()),
    # Any bytes are valid iso-8859-1, and templates declare it for other languages: ignored.
    ("", "iso-8859-1", CHINESE, "gb18030", ("charset not declared: guessed gb18030",)),
    ("", "utf-8", "café au lait et thé", "cp1252",
     ("charset not as declared: utf-8, read as windows-1252",)),
    ("", "none-such", "café", "cp1252", ("charset not declared: read as windows-1252",))])
def test_what_html_declares(element, declared, meta, text, codec, error):
    message = parse_message(
        f"Content-Type: text/html{declared}\n\n<html><head>{element.format(meta)}</head>".encode()
        + text.encode(codec))
    assert message.body == text
    assert tuple(one for one in message.errors if "unknown" not in one) == error


def test_the_number_of_guesses_per_message_is_limited(monkeypatch):
    sizes = []
    monkeypatch.setattr(charset_guess, "guess_codec",
                        lambda sample: sizes.append(len(sample)) or guess_codec(sample))
    parse_message(b"a: \xd0\xcf\xe0\xa1\xb1\xd0\xcf\n" * 99 + b"\nx")
    assert 1 <= len(sizes) <= 3 * charset_guess._MAX_GUESSES
    assert max(sizes) < 20_000


def test_a_sample():
    assert take_sample(b"abc") == b""
    assert take_sample(b"abc \xe9t\xe9\r\nx\n<b>\xe9</b>&nbsp;y") == b"\xe9t\xe9\n\xe9  y"
    assert take_sample(b"\xe9 \xe8 \xe7", size=4) == b"\xe9 \xe8 "
    assert not has_other_script(b"")
    assert len(take_sample(CHINESE.encode("gbk") * 9999)) <= 8 << 10
