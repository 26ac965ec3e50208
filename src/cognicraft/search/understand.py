"""What a question means, as far as that can be told without a model.

Takes: a question, the names of the workspace (`names.py`), the language if it is known.
Returns: an `Understanding`: the question with contractions written out, its telling words, the documents that it names,
    the one document that is asked for as a whole ("open the 2022 annual report"), and in sentences what was made of it.
Method: tables of contractions, stop words and verbs; everything else is taught by the workspace's own names.
Cost: well under a millisecond beside `Names.fit`.
What can go wrong: "show me" in a language that has no verb in the table is an ordinary question. A document is asked
    for as a whole only where every word left over stands in the names of one document, and of one only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cognicraft.records import DocumentHint, Understanding
from cognicraft.search.names import Named, Names
from cognicraft.search.periods import periods, without
from cognicraft.search.stopwords import STOP_WORDS

_WHOLE_WORDS = {"won't": "will not", "can't": "cannot", "shan't": "shall not", "let's": "let us", "ain't": "is not"}
_CONTRACTIONS = (
    (re.compile(rf"\b(?:{'|'.join(_WHOLE_WORDS)})\b", re.IGNORECASE), None),
    (re.compile(r"(?<=\w)n't\b", re.IGNORECASE), " not"),
    (re.compile(r"\b(what|who|where|when|why|how|which|that|there|here|it|he|she)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(you|we|they|what|who|there|these|those)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(i|you|he|she|it|we|they|what|who|that|there)'ll\b", re.IGNORECASE), r"\1 will"),
    (re.compile(r"\b(i|you|we|they|who|what|could|should|would|might|must)'ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\b(i|you|he|she|it|we|they|who)'d\b", re.IGNORECASE), r"\1 would"),
    (re.compile(r"\bi'm\b", re.IGNORECASE), "I am"),
)
_WORD = re.compile(r"[^\W_]+(?:[-.’'&][^\W_]+)*")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|dell|nell|all|dall|sull|un)['’](?=\w)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)

_ASKED_FOR = re.compile(
    r"^\W*(?:(?:please|bitte|s'il (?:te|vous) plaît|por favor|per favore)\W+)?"
    r"(?:(?:can|could|would|will) you (?:please )?|(?:kannst|könntest) du (?:mir )?|i (?:want|would like) to )?"
    r"(?:(?:show|give|read|print|open|bring|pull|send)(?: (?:me|us|up|out))+"
    r"|(?:open|display|read|print|view|load|show|see|summari[sz]e|sum up)|let (?:me|us) (?:see|read)"
    r"|zeige?n?(?: sie)?(?: mir| uns)?|öffnen?(?: sie)?|lies(?: mir)?|gib(?: mir| uns)?|anzeigen|fasse?n?(?: sie)?"
    r"|montre[rz]?(?:[- ]moi|[- ]nous)?|ouvr(?:e[rz]?|ir)|affiche[rz]?|lis|donne[rz]?[- ]moi|résume[rz]?"
    r"|mu[ée]stra(?:me|nos)?|mostrar|abr(?:e|a|ir)|ens[ée][ñn]a(?:me|nos)|lee|dame|resum[ae]"
    r"|mostra(?:mi|ci|-me)?|mostre(?:-me)?|apri|leggi|dammi|riassumi|leia"
    r"|toon(?: me| mij)?|laat (?:me|mij|ons)|lees|geef(?: me| mij)?|visa(?: mig)?|öppna|läs|vis(?: mig| meg)?|åbn|åpne"
    r"|pokaż(?: mi)?|otwórz|покажи(?:те)?(?: мне)?|открой(?:те)?|прочитай)\b",
    re.IGNORECASE,
)
# Words of such a request that may but need not stand in a name.
_ABOUT = """
    document file pdf text page whole full entire complete content copy version report paper letter book article filing
    manual guide note statement all latest newest recent most current
    dokument datei ganze ganzen ganzes vollständige vollständigen gesamte gesamten bericht text inhalt zusammen neueste
    neuesten neuester letzte letzten mein meine meinen meiner meinem meines unser unsere unseren
    fichier texte entier entière complet complète rapport contenu tout toute dernier dernière mon ma mes notre nos
    documento archivo fichero texto completo completa entero entera informe contenido todo toda último última mi mis
    nuestro nuestra file testo intero intera relazione contenuto ultimo ultima mio mia nostro nostra il
    arquivo ficheiro relatório conteúdo inteiro inteira meu minha nosso nossa
    bestand hele volledige rapport mijn ons onze nieuwste laatste
    my our your his her their
"""
_ABOUT_DOCUMENTS = frozenset(_ABOUT.split())
_NEWEST = re.compile(
    r"\b(?:latest|newest|(?:most )?recent|neueste\w*|letzte\w*|dernière?s?|últim[oa]|ultim[oa]|nieuwste|laatste)\b",
    re.IGNORECASE,
)
_MOST_LISTED = 3


def understand(question: str, *, names: Names | None = None, language: str = "") -> Understanding:
    """What the question is taken to mean.

    names: of the workspace's documents; None: no document is hinted at. language: ISO 639-1 code of the question, ""
    where it is not known.
    """
    query = expand(question) if language in ("", "en") else question
    named = names.fit(query) if names is not None else Named()
    whole = _whole_document(query, names) if names is not None else ""
    return Understanding(
        query=query,
        key_terms=key_terms(query, language=language),
        language=language,
        hints=named.hints,
        whole_document=whole,
        notes=tuple(_notes(named, whole, names)),
    )


def expand(question: str) -> str:
    """English contractions written out: "what's", "didn't", "they'll". A possessive 's stays."""
    text = re.sub(r"(?<=\w)’(?=\w)", "'", question)
    if "'" not in text:
        return question
    for pattern, replacement in _CONTRACTIONS:
        if replacement is None:
            text = pattern.sub(lambda match: _WHOLE_WORDS[match[0].lower()], text)
        else:
            text = pattern.sub(replacement, text)
    return text


def key_terms(question: str, *, language: str = "") -> tuple[str, ...]:
    """The words that tell what it is about, in order, each once; without the stop words of the language.

    Where the language is not known, those in which most of the words are stop words.
    """
    words = [_POSSESSIVE.sub("", _ELISION.sub("", match[0])) for match in _WORD.finditer(question)]
    plain = {word.casefold() for word in words}
    stops = STOP_WORDS.get(language)
    if stops is None:
        stops = max(STOP_WORDS.values(), key=lambda one: len(one & plain)) if not language else frozenset()
    kept = {word.casefold(): word for word in reversed(words) if word and word.casefold() not in stops}
    return tuple(dict.fromkeys(kept[word.casefold()] for word in words if word.casefold() in kept))


def _whole_document(question: str, names: Names) -> str:
    """Id of the document that is asked for as a whole, "" where none is, or where several may be."""
    asked_for = _ASKED_FOR.match(question)
    if asked_for is None:
        return ""
    rest = question[asked_for.end() :]
    mentions = periods(rest)
    words = names.words(without(rest, mentions))
    needed = [
        word
        for word in words
        if not _is_function_word(word.text) and (word.text.casefold() not in _ABOUT_DOCUMENTS or names.knows(word))
    ]
    return names.whole(needed, [one.period for one in mentions], newest=bool(_NEWEST.search(rest)))


def _is_function_word(word: str) -> bool:
    plain = word.casefold()
    return len(plain) > 1 and any(plain in stops for stops in STOP_WORDS.values())


def _notes(named: Named, whole: str, names: Names | None) -> list[str]:
    notes = []
    if whole and names is not None:
        notes.append(f"Taken to ask for the whole of {_file(names.source(whole))}.")
    groups: dict[tuple[str, ...], list[DocumentHint]] = {}
    for hint in named.hints:
        if hint.words or named.extreme:  # what only shares a weaker name needs no telling
            groups.setdefault(hint.words, []).append(hint)
    # Those whose words are more say what was meant; the others only share some of them.
    for words, hints in list(groups.items())[:_MOST_LISTED]:
        meant = [*words, *([f"the {named.extreme}"] if named.extreme else [])]
        if named.extreme:
            hints = [hint for hint in hints if hint.fit == hints[0].fit]
        notes.append(f"Taken to mean: {', '.join(meant)} -> {_listed([_file(hint.source) for hint in hints])}.")
    for period in named.unmatched:
        notes.append(f"No document of that name is for {period}.")
    return notes


def _listed(files: Sequence[str]) -> str:
    files = list(dict.fromkeys(files))
    if len(files) <= _MOST_LISTED:
        return ", ".join(files)
    return f"{', '.join(files[:_MOST_LISTED])} and {len(files) - _MOST_LISTED} more"


def _file(source: str) -> str:
    return source.replace("\\", "/").rstrip("/").rpartition("/")[2] or source
