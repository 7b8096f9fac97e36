"""English names of languages, for lists that people choose from."""

from translator.languages import language_subtag

_NAMES = """
af Afrikaans; am Amharic; ar Arabic; az Azerbaijani; be Belarusian; bg Bulgarian; bn Bengali; bs Bosnian; ca Catalan;
cs Czech; cy Welsh; da Danish; de German; el Greek; en English; eo Esperanto; es Spanish; et Estonian; eu Basque;
fa Persian; fi Finnish; fr French; ga Irish; gl Galician; gu Gujarati; ha Hausa; he Hebrew; hi Hindi; hr Croatian;
hu Hungarian; hy Armenian; id Indonesian; is Icelandic; it Italian; ja Japanese; ka Georgian; kk Kazakh; km Khmer;
kn Kannada; ko Korean; la Latin; lb Luxembourgish; lt Lithuanian; lv Latvian; mk Macedonian; ml Malayalam; mn Mongolian;
mr Marathi; ms Malay; mt Maltese; my Burmese; nb Norwegian Bokmål; ne Nepali; nl Dutch; no Norwegian; pa Punjabi;
pl Polish; ps Pashto; pt Portuguese; ro Romanian; ru Russian; si Sinhala; sk Slovak; sl Slovenian; so Somali;
sq Albanian; sr Serbian; sv Swedish; sw Swahili; ta Tamil; te Telugu; th Thai; tl Tagalog; tr Turkish; uk Ukrainian;
ur Urdu; uz Uzbek; vi Vietnamese; xh Xhosa; yo Yoruba; zh Chinese; zu Zulu
"""
NAMES: dict[str, str] = dict(entry.split(maxsplit=1) for entry in _NAMES.replace("\n", " ").split(";"))


def language_name(code: str) -> str:
    """The name of the language, followed by the rest of the code, if any; the code itself if it is not known."""
    name = NAMES.get(language_subtag(code))
    if name is None:
        return code
    variety = code.replace("_", "-").partition("-")[2]
    return f"{name} ({variety})" if variety else name
