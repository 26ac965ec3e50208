"""Words that say nothing of what a text is about, by language: function words, not topics.

Short on purpose: idf already makes frequent words cheap; what is listed is what fills questions ("what", "does") and
the pieces that an apostrophe leaves ("s", "t", French "l", "qu"). A language that is not here has none.
"""

from __future__ import annotations

_LISTS = {
    "en": """
        a an the this that these those and or but nor if then than so as at by for from in into of off on
        onto out over to with about between through during before after i me my we our ours you your he him
        his she her hers it its they them their am is are was were be been being do does did doing done have
        has had having can could will would shall should may might must not what which who whom whose when
        where why how there here all any both each some such also very just s t d m ll re ve don doesn didn
        isn aren wasn weren
    """,
    "de": """
        der die das den dem des ein eine einer eines einem einen und oder aber wenn dann als wie an am auf
        aus bei beim bis durch für gegen in im ins ist sind war waren wird werden wurde wurden sein seine
        seiner seinen seinem hat haben hatte hatten kann können konnte mit nach nicht noch nur ob ohne sich
        sie er es ich du wir ihr ihre ihrer ihren ihrem mich mir dich dir uns so um unter von vom vor was
        wer wen wem wessen welche welcher welches welchen welchem wann warum wo woher wohin zu zum zur
        zwischen über auch da dass daß dies diese dieser dieses diesen diesem doch hier man mehr sehr
    """,
    "fr": """
        le la les l un une des du de d et ou mais si que qu qui quoi dont où quand comment pourquoi quel
        quelle quels quelles ce cet cette ces c ça cela au aux en dans par pour sur sous avec sans entre
        vers chez est sont était étaient être été a ont avait avaient avoir fut il ils elle elles on nous
        vous je j tu me m te t se s lui leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos ne n
        pas plus y comme ainsi aussi
    """,
    "es": """
        el la los las lo un una unos unas de del a al y e o u pero si que qué quien quién quienes quiénes
        cual cuál cuáles cuando cuándo cuanto cuánto cuántos cuántas como cómo donde dónde por para con sin
        en entre sobre hacia hasta desde es son era eran fue fueron ser sido está están estaba ha han había
        habían hay se su sus le les me te nos mi mis tu tus yo él ella ellos ellas no más muy también este
        esta estos estas ese esa esos esas eso esto porque
    """,
    "it": """
        il lo la i gli le l un uno una di a da in con su per tra fra e ed o ma se che chi cui quale quali
        quando come dove perché quanto quanti quante del dello della dei degli delle dell al allo alla ai
        agli alle all dal dallo dalla dai dagli dalle dall nel nello nella nei negli nelle nell sul sullo
        sulla sui sugli sulle sull è sono era erano essere stato fu furono ha hanno aveva avevano si ci vi
        ne mi ti non più suo sua suoi sue loro questo questa questi queste quello quella c d
    """,
    "pt": """
        o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas para com sem
        entre sobre até e ou mas se que quem qual quais quando como onde porque quanto quantos quantas é são
        era eram foi foram ser sido está estão estava há ao aos à às seu sua seus suas lhe lhes me te eu ele
        ela eles elas não mais muito também este esta estes estas esse essa isso isto
    """,
    "nl": """
        de het een en of maar als dan dat die dit deze wie wat waar wanneer waarom hoe welke welk van in op
        aan met voor door over bij naar uit tot om onder tussen is zijn was waren wordt worden werd werden
        heeft hebben had hadden kan kunnen niet ook er nog te ik je jij u hij zij ze we wij hun haar hem
    """,
    "sv": """
        en ett den det de och eller men om att som vad vem vilken vilket vilka när var varför hur av i på
        till från med för vid under över mellan är vara blev har hade kan kunde inte också han hon dem sin
        sitt sina jag du vi ni
    """,
    "da": """
        en et den det de og eller men om at som hvad hvem hvilken hvilket hvilke hvornår hvor hvorfor
        hvordan af i på til fra med for ved under over mellem er var være blev har havde kan kunne ikke også
        han hun dem sin sit sine jeg du vi
    """,
    "no": """
        en et ei den det de og eller men om at som hva hvem hvilken hvilket hvilke når hvor hvorfor hvordan
        av i på til fra med for ved under over mellom er var være ble har hadde kan kunne ikke også han hun
        dem sin sitt sine jeg du vi
    """,
    "fi": """
        ja tai mutta jos että kun kuin mikä mitä kuka ketkä missä milloin miksi miten on ovat oli olivat ei
        se ne hän he
    """,
    "pl": """
        i a o w z ze na do od po za przez przy dla pod nad między oraz lub ale że jak co kto kiedy gdzie
        dlaczego który która które którzy jest są był była było były być się nie to ten ta te tego tej tych
        jego jej ich
    """,
    "ru": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее её мне из ему от
        о об кто какой какая какое какие когда где почему сколько который которая которое которые для при
        это этот эта эти был была было были быть есть их мы они или до чем ли
    """,
    "tr": """
        ve veya ile bir bu şu o da de ki mi mı mu mü ne kim hangi nerede zaman neden niçin nasıl kaç için
        gibi olarak
    """,
}

STOP_WORDS = {code: frozenset(words.split()) for code, words in _LISTS.items()}
"""ISO 639-1 code -> casefolded words."""
STOP_WORDS.update(nb=STOP_WORDS["no"], nn=STOP_WORDS["no"])
