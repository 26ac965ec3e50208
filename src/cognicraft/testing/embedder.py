"""What every `Embedder` must do, as a pytest class. Give it your encoder by a fixture and run it:

    class TestMine(EmbedderConformance):
        @pytest.fixture(scope="class")
        @classmethod
        def embedder(cls):
            with closing(MyEmbedder()) as embedder:
                yield embedder

The suite settles what the protocol's types cannot say: an empty text has a unit vector and no token codes; a
text that is too long is cut, never refused; nothing that a `str` can hold makes encoding fail; a text's
encoding is the same bytes whatever it is encoded with, in whatever order, on whatever thread. It sees English
only, so that any encoder can pass.

An encoder that runs elsewhere has no token vectors, and its last bits may differ from call to call; its class says so:

    class TestMine(EmbedderConformance):
        token_codes = False     # none, for documents and questions alike
        same_bytes = False      # cosine above .9999 instead
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from cognicraft.protocols import Embedder
from cognicraft.records import ByteArray, Encoding

TEXTS = (
    "The ferry leaves the harbour at nine in the morning.",
    "Insulin lowers the amount of sugar in the blood.",
    "def add(left, right): return left + right",
    "Revenue rose to 41.7 million dollars in the third quarter.",
    "Bees dance to tell each other where the flowers are.",
)
QUESTIONS = (
    "When does the boat depart?",
    "Which hormone reduces blood sugar?",
    "A Python function that sums two numbers",
    "How high were sales in the third quarter?",
    "How do bees tell others where the flowers are?",
)
AWKWARD = (
    "",
    " ",
    "\n\t\r\n",
    "\x00",
    "a\x00b",
    "\ud800",
    "lone \udc00 surrogate",
    "\ufffe\uffff",
    "e\u0301\u0301\u0301",
    "👩‍👩‍👧‍👦 🏴‍☠️",
    "مرحبا بالعالم",
    "東京都の人口",
    "½ ﬁ ㎏ Ⅷ",
    "[CLS] [SEP] [MASK] [PAD] <s> </s> <unk>",
    "word\u00a0word\u2003word\u200bword",
    "a" * 5_000,
    "- " * 2_000,
)
LONG = " ".join(f"Sentence {number} is about the number {number}." for number in range(600))


class EmbedderConformance:
    """Run by pytest through a subclass that has an `embedder` fixture."""

    token_codes = True
    same_bytes = True

    def test_says_what_it_is(self, embedder: Embedder) -> None:
        assert embedder.name
        assert embedder.dimensions % 8 == 0
        assert embedder.dimensions > 0
        assert embedder.max_tokens > 2
        assert embedder.fingerprint
        assert embedder.languages is None or all(len(code) == 2 for code in embedder.languages)

    def test_vectors_are_float32_of_length_one(self, embedder: Embedder) -> None:
        for encoding in [*embedder.encode_documents(TEXTS), *map(embedder.encode_query, QUESTIONS)]:
            assert encoding.vector.dtype == np.float32
            assert encoding.vector.shape == (embedder.dimensions,)
            assert abs(float(np.linalg.norm(encoding.vector)) - 1) < 1e-5

    def test_no_texts_give_no_encodings(self, embedder: Embedder) -> None:
        assert embedder.encode_documents([]) == []

    def test_an_encoder_without_token_vectors_never_gives_codes(self, embedder: Embedder) -> None:
        if not self.token_codes:
            assert embedder.encode_documents(TEXTS[:1], token_codes=True)[0].token_codes is None
            assert embedder.encode_query(TEXTS[0]).token_codes is None

    def test_documents_have_codes_only_when_asked_and_questions_always(self, embedder: Embedder) -> None:
        if not self.token_codes:
            return
        assert embedder.encode_documents(TEXTS[:1])[0].token_codes is None
        document = embedder.encode_documents(TEXTS[:1], token_codes=True)[0]
        for encoding in (document, embedder.encode_query(TEXTS[0])):
            codes = encoding.token_codes
            assert codes is not None
            assert codes.dtype == np.uint8
            assert codes.shape[1] == embedder.dimensions // 8
            assert codes.flags.c_contiguous

    def test_codes_are_those_of_the_tokens_of_the_text(self, embedder: Embedder) -> None:
        if not self.token_codes:
            return
        for text in (*TEXTS, *AWKWARD):
            (encoding,) = embedder.encode_documents([text], token_codes=True)
            assert encoding.token_codes is not None
            if len(embedder.token_offsets(text)) < embedder.max_tokens // 2:
                assert len(encoding.token_codes) == len(embedder.token_offsets(text))

    def test_asking_for_codes_does_not_change_the_vector(self, embedder: Embedder) -> None:
        plain = embedder.encode_documents(TEXTS)
        coded = embedder.encode_documents(TEXTS, token_codes=True)
        assert all(self._equal(a, b, codes=False) for a, b in zip(plain, coded, strict=True))

    def test_an_empty_text_has_a_vector_and_no_codes(self, embedder: Embedder) -> None:
        (encoding,) = embedder.encode_documents([""], token_codes=True)
        assert np.isfinite(encoding.vector).all()
        if self.token_codes:
            assert encoding.token_codes is not None
            assert encoding.token_codes.shape == (0, embedder.dimensions // 8)

    def test_nothing_a_string_can_hold_makes_it_fail(self, embedder: Embedder) -> None:
        encodings = embedder.encode_documents(AWKWARD, token_codes=True)
        assert len(encodings) == len(AWKWARD)
        for text, encoding in zip(AWKWARD, encodings, strict=True):
            assert abs(float(np.linalg.norm(encoding.vector)) - 1) < 1e-5, repr(text[:20])
            assert abs(float(np.linalg.norm(embedder.encode_query(text).vector)) - 1) < 1e-5, repr(text[:20])

    def test_a_very_long_text_without_a_space_is_encoded(self, embedder: Embedder) -> None:
        (encoding,) = embedder.encode_documents(["a" * 300_000])
        assert np.isfinite(encoding.vector).all()

    def test_a_long_text_is_cut_at_the_limit(self, embedder: Embedder) -> None:
        long = LONG * (1 + 2 * embedder.max_tokens // len(embedder.token_offsets(LONG)))
        (encoding,) = embedder.encode_documents([long], token_codes=True)
        used = embedder.max_text_tokens
        if self.token_codes:
            assert encoding.token_codes is not None
            assert len(encoding.token_codes) == used
        assert embedder.max_tokens // 2 < used <= embedder.max_tokens
        assert used < len(embedder.token_offsets(long))
        cut = long[: embedder.token_offsets(long)[used - 1][1]]
        assert self._equal(embedder.encode_documents([cut])[0], encoding, codes=False)

    def test_results_stand_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        texts = [LONG, *TEXTS, ""]
        forward = embedder.encode_documents(texts)
        backward = embedder.encode_documents(texts[::-1])[::-1]
        assert all(self._equal(a, b) for a, b in zip(forward, backward, strict=True))

    def test_a_text_has_the_same_bytes_whatever_it_is_encoded_with(self, embedder: Embedder) -> None:
        alone = [embedder.encode_documents([text], token_codes=True)[0] for text in TEXTS]
        for company in ([LONG], list(AWKWARD), list(TEXTS) * 3):
            together = embedder.encode_documents([*company, *TEXTS], token_codes=True)[len(company) :]
            assert all(self._equal(a, b) for a, b in zip(alone, together, strict=True))

    def test_threads_do_not_disturb_each_other(self, embedder: Embedder) -> None:
        expected = embedder.encode_documents(TEXTS, token_codes=True)
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda _: embedder.encode_documents(TEXTS, token_codes=True), range(8)))
        assert all(self._equal(a, b) for run in runs for a, b in zip(expected, run, strict=True))

    def test_each_question_finds_its_document(self, embedder: Embedder) -> None:
        documents = np.stack([encoding.vector for encoding in embedder.encode_documents(TEXTS)])
        best = [int(np.argmax(documents @ embedder.encode_query(question).vector)) for question in QUESTIONS]
        assert best == list(range(len(TEXTS)))

    def test_token_codes_alone_find_the_documents_too(self, embedder: Embedder) -> None:
        if not self.token_codes:
            return
        documents = [encoding.token_codes for encoding in embedder.encode_documents(TEXTS, token_codes=True)]
        for number, question in enumerate(QUESTIONS):
            codes = embedder.encode_query(question).token_codes
            assert codes is not None
            scores = [_agreement(codes, document) for document in documents if document is not None]
            assert int(np.argmax(scores)) == number, question

    def test_token_offsets_lie_in_the_text_in_order_without_overlap(self, embedder: Embedder) -> None:
        for text in (*TEXTS, *AWKWARD, LONG):
            spans = embedder.token_offsets(text)
            assert all(0 <= start <= end <= len(text) for start, end in spans)
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))

    def test_token_offsets_cover_every_word(self, embedder: Embedder) -> None:
        for text in TEXTS:
            covered = {position for start, end in embedder.token_offsets(text) for position in range(start, end)}
            assert all(position in covered for position, character in enumerate(text) if character.isalnum())

    def test_closing_twice_is_fine(self, embedder: Embedder) -> None:
        embedder.close()
        embedder.close()

    def _equal(self, left: Encoding, right: Encoding, *, codes: bool = True) -> bool:
        """As far as the encoder promises. codes: whether both were asked for them, or neither."""
        if not self.same_bytes:
            return float(left.vector @ right.vector) > 0.9999
        if codes and (left.token_codes is None) != (right.token_codes is None):
            return False
        if codes and left.token_codes is not None and right.token_codes is not None:
            return np.array_equal(left.vector, right.vector) and np.array_equal(left.token_codes, right.token_codes)
        return np.array_equal(left.vector, right.vector)


def _agreement(question: ByteArray, document: ByteArray) -> float:
    """Mean over the question's tokens of the largest share of equal bits with a token of the document."""
    differing = np.bitwise_count(question[:, None, :] ^ document[None, :, :]).sum(axis=2, dtype=np.int64)
    return float(-differing.min(axis=1).mean())
