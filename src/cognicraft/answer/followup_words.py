"""What a follow-up question is made of, by language: lists of words, nothing else. Read by `followup.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FollowUpWords:
    """What a follow-up is made of in one language; all casefolded.

    strong: openings that no question that stands alone has. weak: such as may begin one too. things and persons:
    pronouns. idle: phrases in which a pronoun points at nothing.
    """

    asking: str
    strong: tuple[str, ...]
    weak: str
    things: str
    persons: str
    ordinals: str
    idle: tuple[str, ...] = ()
    capitals_are_names: bool = True


LANGUAGES: Mapping[str, FollowUpWords] = {
    "en": FollowUpWords(
        asking=(
            "who whom whose what which when where why how is are was were do does did can could will would should "
            "has have had since many much often"
        ),
        strong=("what about", "how about", "and what about", "what of", "same for", "the same for", "tell me more"),
        weak="and but also or so then",
        things="it its they them their theirs this that these those",
        persons="he him his she her hers",
        ordinals="first second third fourth fifth last next previous former latter other another same",
        idle=("is it true", "is it correct", "is it possible", "is it known", "was it possible", "does it matter"),
    ),
    "de": FollowUpWords(
        asking=(
            "wer wen wem wessen was welche welcher welches welchen welchem wann wo woher wohin warum wieso "
            "weshalb wie ist sind war waren hat haben kann wird seit viel viele"
        ),
        strong=("was ist mit", "wie ist es mit", "wie steht es mit", "wie sieht es mit", "wie war es mit", "mehr dazu"),
        weak="und aber auch oder dann",
        things=(
            "er sie es ihn ihm ihnen ihr ihre ihrer ihren ihrem ihres dessen deren diese dieser dieses diesem "
            "diesen davon dazu darüber dafür damit dort"
        ),
        persons="sein seine seiner seinen seinem",
        ordinals=(
            "erste ersten erster erstes zweite zweiten zweiter zweites dritte dritten dritter drittes vierte "
            "vierten letzte letzten letztes nächste nächsten vorige vorigen andere anderen"
        ),
        idle=("gibt es", "gab es", "ist es wahr", "stimmt es", "handelt es sich"),
        capitals_are_names=False,
    ),
    "fr": FollowUpWords(
        asking="qui que quoi quel quelle quels quelles quand où pourquoi comment combien est sont était a ont",
        strong=("qu'en est-il", "et pour", "et concernant", "et à propos", "et quant", "même question"),
        weak="et mais aussi ou alors",
        things="il elle ils elles leur leurs son sa ses celui celle ceux celles cela ça cet cette ces",
        persons="lui",
        ordinals=(
            "premier première deuxième second seconde troisième quatrième dernier dernière prochain prochaine "
            "autre autres même"
        ),
        idle=("y a-t-il", "il y a", "est-il vrai", "s'agit-il", "faut-il"),
    ),
    "es": FollowUpWords(
        asking=(
            "quién quiénes qué cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas es son era fue fueron ha han"
        ),
        strong=("qué hay de", "y qué hay de", "qué pasa con", "y qué pasa con", "qué tal", "y en cuanto a"),
        weak="y e pero también o entonces",
        things="él ella ellos ellas su sus este esta estos estas ese esa esos esas esto eso",
        persons="",
        ordinals=(
            "primer primero primera segundo segunda tercer tercero tercera cuarto cuarta último última siguiente "
            "anterior otro otra"
        ),
    ),
    "it": FollowUpWords(
        asking="chi che cosa quale quali quando dove come perché quanto quanta quanti quante è sono era fu ha hanno",
        strong=("che ne è di", "e per quanto riguarda", "che dire di", "e riguardo a", "e invece"),
        weak="e ed ma anche o oppure allora",
        things="esso essa essi esse loro suo sua suoi sue questo questa questi queste quello quella ciò",
        persons="lui lei",
        ordinals=(
            "primo prima secondo seconda terzo terza quarto quarta ultimo ultima prossimo precedente altro altra"
        ),
    ),
    "pt": FollowUpWords(
        asking="quem que qual quais quando onde como porque quanto quanta quantos quantas é são era foi foram há",
        strong=("e quanto a", "e quanto à", "e quanto ao", "que tal", "e sobre"),
        weak="e mas também ou então",
        things="ele ela eles elas dele dela deles delas seu sua seus suas isso isto esse essa este esta",
        persons="",
        ordinals=(
            "primeiro primeira segundo segunda terceiro terceira quarto quarta último última próximo anterior "
            "outro outra"
        ),
    ),
    "nl": FollowUpWords(
        asking="wie wat welke welk wanneer waar waarom hoe is zijn was waren heeft hebben kan",
        strong=("hoe zit het met", "en hoe zit het met", "wat met", "en wat met", "hoe is het met"),
        weak="en maar ook of dan",
        things="zij ze hun dit dat deze die ervan daarvan daarover",
        persons="hij hem haar",
        ordinals="eerste tweede derde vierde laatste volgende vorige andere",
    ),
}
