"""Names and two-letter codes of the languages that models of many languages know, and under which code each is asked
for: the models' own codes differ (deu, eng_Latn, de_DE).
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence

# Codes of three letters that models use, and the usual code of two.
TWO_LETTERS = {
    "afr": "af", "als": "sq", "amh": "am", "arb": "ar", "ara": "ar", "asm": "as", "aze": "az", "azj": "az",
    "bak": "ba", "bam": "bm", "bel": "be", "ben": "bn", "bod": "bo", "bos": "bs", "bre": "br", "bul": "bg",
    "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy", "dan": "da", "deu": "de", "dzo": "dz", "ell": "el",
    "eng": "en", "epo": "eo", "est": "et", "eus": "eu", "ewe": "ee", "fao": "fo", "fas": "fa", "fij": "fj",
    "fin": "fi", "fra": "fr", "fry": "fy", "gla": "gd", "gle": "ga", "glg": "gl", "grn": "gn", "guj": "gu",
    "hat": "ht", "hau": "ha", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy", "ibo": "ig",
    "ido": "io", "ina": "ia", "ind": "id", "isl": "is", "ita": "it", "jav": "jv", "jpn": "ja", "kan": "kn",
    "kas": "ks", "kat": "ka", "kaz": "kk", "khk": "mn", "khm": "km", "kik": "ki", "kin": "rw", "kir": "ky",
    "kon": "kg", "kor": "ko", "kur": "ku", "lao": "lo", "lat": "la", "lav": "lv", "lim": "li", "lin": "ln",
    "lit": "lt", "ltz": "lb", "lug": "lg", "lvs": "lv", "mal": "ml", "mar": "mr", "mkd": "mk", "mlg": "mg",
    "mlt": "mt", "mon": "mn", "mri": "mi", "msa": "ms", "mya": "my", "nep": "ne", "nld": "nl", "nno": "nn",
    "nob": "nb", "nor": "no", "npi": "ne", "nya": "ny", "oci": "oc", "ory": "or", "pan": "pa", "pbt": "ps",
    "pes": "fa", "plt": "mg", "pol": "pl", "por": "pt", "pus": "ps", "quy": "qu", "ron": "ro", "run": "rn",
    "rus": "ru", "sag": "sg", "san": "sa", "sin": "si", "slk": "sk", "slv": "sl", "smo": "sm", "sna": "sn",
    "snd": "sd", "som": "so", "sot": "st", "spa": "es", "sqi": "sq", "srd": "sc", "srp": "sr", "ssw": "ss",
    "sun": "su", "swa": "sw", "swe": "sv", "swh": "sw", "tam": "ta", "tat": "tt", "tel": "te", "tgk": "tg",
    "tgl": "tl", "tha": "th", "tir": "ti", "tsn": "tn", "tso": "ts", "tuk": "tk", "tur": "tr", "twi": "tw",
    "uig": "ug", "ukr": "uk", "urd": "ur", "uzb": "uz", "uzn": "uz", "vie": "vi", "wol": "wo", "xho": "xh",
    "ydd": "yi", "yid": "yi", "yor": "yo", "zho": "zh", "zsm": "ms", "zul": "zu",
}  # fmt: skip
MORE_NAMES = {
    "ace": "Acehnese", "acm": "Mesopotamian Arabic", "acq": "Ta'izzi-Adeni Arabic", "aeb": "Tunisian Arabic",
    "ajp": "South Levantine Arabic", "aka": "Akan", "am": "Amharic", "apc": "North Levantine Arabic",
    "ars": "Najdi Arabic", "ary": "Moroccan Arabic", "arz": "Egyptian Arabic", "as": "Assamese", "ast": "Asturian",
    "awa": "Awadhi", "ayr": "Central Aymara", "az": "Azerbaijani", "azb": "South Azerbaijani", "ba": "Bashkir",
    "ban": "Balinese", "be": "Belarusian", "bem": "Bemba", "bho": "Bhojpuri", "bjn": "Banjar", "bm": "Bambara",
    "bo": "Tibetan", "br": "Breton", "bs": "Bosnian", "bug": "Buginese", "ceb": "Cebuano", "cjk": "Chokwe",
    "ckb": "Central Kurdish", "crh": "Crimean Tatar", "dik": "Southwestern Dinka", "dyu": "Dyula", "dz": "Dzongkha",
    "ee": "Ewe", "ff": "Fulah", "fj": "Fijian", "fo": "Faroese", "fon": "Fon", "fur": "Friulian",
    "fuv": "Nigerian Fulfulde", "fy": "Western Frisian", "gaz": "West Central Oromo", "gd": "Scottish Gaelic",
    "gn": "Guarani", "gu": "Gujarati", "ha": "Hausa", "hne": "Chhattisgarhi", "ht": "Haitian Creole",
    "ia": "Interlingua", "ig": "Igbo", "ilo": "Ilocano", "io": "Ido", "jv": "Javanese", "kab": "Kabyle",
    "kac": "Jingpho", "kam": "Kamba", "kbp": "Kabiyè", "kea": "Kabuverdianu", "kg": "Kikongo", "ki": "Kikuyu",
    "kk": "Kazakh", "km": "Khmer", "kmb": "Kimbundu", "kmr": "Northern Kurdish", "kn": "Kannada",
    "knc": "Central Kanuri", "ks": "Kashmiri", "ku": "Kurdish", "ky": "Kyrgyz", "lb": "Luxembourgish", "lg": "Ganda",
    "li": "Limburgish", "lij": "Ligurian", "lmo": "Lombard", "ln": "Lingala", "lo": "Lao", "ltg": "Latgalian",
    "lua": "Luba-Kasai", "luo": "Luo", "lus": "Mizo", "mag": "Magahi", "mai": "Maithili", "mg": "Malagasy",
    "mi": "Maori", "min": "Minangkabau", "ml": "Malayalam", "mn": "Mongolian", "mni": "Meitei", "mos": "Mossi",
    "mr": "Marathi", "my": "Burmese", "ne": "Nepali", "nn": "Norwegian Nynorsk", "no": "Norwegian",
    "ns": "Northern Sotho", "nso": "Northern Sotho", "nus": "Nuer", "ny": "Nyanja", "oc": "Occitan", "or": "Odia",
    "pa": "Punjabi", "pag": "Pangasinan", "pap": "Papiamento", "prs": "Dari", "ps": "Pashto", "qu": "Quechua",
    "rn": "Rundi", "rw": "Kinyarwanda", "sa": "Sanskrit", "sat": "Santali", "sc": "Sardinian", "scn": "Sicilian",
    "sd": "Sindhi", "sg": "Sango", "shn": "Shan", "si": "Sinhala", "sm": "Samoan", "sn": "Shona", "so": "Somali",
    "ss": "Swati", "st": "Southern Sotho", "su": "Sundanese", "szl": "Silesian", "taq": "Tamasheq", "te": "Telugu",
    "tg": "Tajik", "ti": "Tigrinya", "tk": "Turkmen", "tn": "Tswana", "tpi": "Tok Pisin", "ts": "Tsonga",
    "tt": "Tatar", "tum": "Tumbuka", "tw": "Twi", "tzm": "Central Atlas Tamazight", "ug": "Uyghur", "umb": "Umbundu",
    "uz": "Uzbek", "vec": "Venetian", "war": "Waray", "wo": "Wolof", "xh": "Xhosa", "yi": "Yiddish", "yo": "Yoruba",
    "yue": "Cantonese", "zu": "Zulu",
}  # fmt: skip
SCRIPTS = {
    "arab": "Arabic script", "beng": "Bengali script", "cyrl": "Cyrillic", "deva": "Devanagari", "hans": "simplified",
    "hant": "traditional", "latn": "Latin script", "tfng": "Tifinagh",
}  # fmt: skip


def codes_of(languages: Sequence[str]) -> Mapping[str, str]:
    """By the code that people ask for, the code that a model itself has: de for deu or de_DE, en for eng_Latn. Of one
    language in several scripts each is named with its script: zh-hans, zh-hant. What is its own code keeps it."""
    return _codes_of(tuple(languages))


@functools.lru_cache(maxsize=64)  # a service asks for each of two hundred languages
def _codes_of(languages: tuple[str, ...]) -> dict[str, str]:
    short = {own: own.lower().replace("_", "-") for own in languages}
    bases = {own: TWO_LETTERS.get(code.partition("-")[0], code.partition("-")[0]) for own, code in short.items()}
    alone = Counter(bases.values())
    found: dict[str, str] = {}
    for own, code in short.items():
        script = code.partition("-")[2]
        is_alone = alone[bases[own]] == 1 or not script
        found.setdefault(bases[own] if is_alone else f"{bases[own]}-{script}", own)
    return found


def own_code(asked: str, languages: Sequence[str]) -> str | None:
    """The code that a model has for a language, by whichever code it was asked for; None: it does not know it."""
    if asked in languages:
        return asked
    base, dash, rest = asked.lower().replace("_", "-").partition("-")
    return codes_of(languages).get(TWO_LETTERS.get(base, base) + dash + rest)
