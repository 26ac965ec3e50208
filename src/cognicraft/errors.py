"""Every error the product raises on purpose, each with its exit code, HTTP status and remedy.

    CogniCraftError                    exit  HTTP
    ├── UsageError                        2   400   an argument or a request that cannot be meant
    │   ├── SettingsError                 2   400   a setting unknown, out of bounds or unreadable
    │   └── FilterError                   2   400   a metadata filter or Boolean query that does not parse
    ├── NotFound                          3   404
    │   ├── WorkspaceNotFound             3   404
    │   └── DocumentNotFound              3   404
    ├── ReadError                         4   422   one file that cannot be read; the run goes on without it
    │   ├── EncryptedFile · CorruptFile · EmptyFile · NoTextLayer · FileTooLarge
    │   └── UnsupportedFile · BinaryFile · ReadTimeout · ReadMemory · Unreadable
    ├── WorkspaceLocked                   5   423   another process holds the workspace
    ├── EmbedderMismatch                  6   409   the workspace was made with another encoder
    ├── WorkspaceFormat                   6   409   the workspace was written by another version
    ├── MissingExtra                      7   501   an optional part is not installed
    ├── ModelFileError                    7   500   a model file is absent, damaged or of another version
    ├── EngineError                       8   502   the engine failed or cannot be reached
    ├── ModelError                        9   502   a language model, encoder or reranker that runs elsewhere failed
    │   ├── ModelUnavailable              9   503   not reached, or broken off, also after retries
    │   │   ├── ModelRateLimited          9   503   too many requests, also after retries
    │   │   └── ModelTimeout              9   504   no reply in time
    │   ├── ModelReplyInvalid             9   502   a reply that does not fit what was asked
    │   ├── ModelRefused                  9   502   the provider refused to reply
    │   ├── ContextOverflow               9   502   the prompt is longer than the model reads
    │   ├── ModelAuthentication           9   502   no key, or a wrong one
    │   ├── ModelNotFound                 9   502   the provider has no model of that name
    │   └── BudgetSpent                   9   402   the budget set for model calls is used up
    └── Cancelled                       130   499   stopped by the person; what was reported done is kept

A message is one sentence that names the thing and the reason; `remedy` is one sentence that says what to do.
Exit code 1 is a defect of ours. `code` is the stable name that records and problem documents carry.
"""

from __future__ import annotations


class CogniCraftError(Exception):
    """Root of the tree. `str(error)` is the message with the remedy after it."""

    exit_code = 1
    http_status = 500
    code = "error"

    def __init__(self, message: str, *, remedy: str = "") -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (reader workers): rebuild without calling a subclass's own signature.
        return _rebuild, (type(self), self.message, self.remedy)


def _rebuild(kind: type[CogniCraftError], message: str, remedy: str) -> CogniCraftError:
    error = kind.__new__(kind)
    CogniCraftError.__init__(error, message, remedy=remedy)
    return error


class UsageError(CogniCraftError):
    """An argument or request that cannot be meant."""

    exit_code, http_status, code = 2, 400, "usage"


class SettingsError(UsageError):
    """A setting that is unknown, out of bounds, or in a file that cannot be parsed."""

    code = "settings"


class FilterError(UsageError):
    """A metadata filter or Boolean query that does not parse."""

    code = "filter"


class NotFound(CogniCraftError):
    """Something named by the person does not exist."""

    exit_code, http_status, code = 3, 404, "not-found"


class WorkspaceNotFound(NotFound):
    """No workspace of that name under this home."""

    code = "workspace-not-found"


class DocumentNotFound(NotFound):
    """No document of that id in the workspace."""

    code = "document-not-found"


class ReadError(CogniCraftError):
    """A file that cannot be read. It goes on the quarantine list with its reason; the run goes on."""

    exit_code, http_status, code = 4, 422, "unreadable"


class EncryptedFile(ReadError):
    """The file asks for a password."""

    code = "encrypted"


class CorruptFile(ReadError):
    """The file is damaged or is not what its name says."""

    code = "corrupt"


class EmptyFile(ReadError):
    """The file holds no bytes or no text."""

    code = "empty"


class NoTextLayer(ReadError):
    """The pages are pictures: there is no text to read."""

    code = "no-text-layer"


class FileTooLarge(ReadError):
    """The file, or what it unpacks to, is over the limit."""

    code = "too-large"


class UnsupportedFile(ReadError):
    """No reader for this kind of file."""

    code = "unsupported"


class BinaryFile(ReadError):
    """A file named as text holds binary data."""

    code = "binary"


class ReadTimeout(ReadError):
    """Reading took longer than the deadline for one document."""

    code = "timeout"


class ReadMemory(ReadError):
    """Reading needed more memory than one document may take, or ended the reader process."""

    code = "memory"


class Unreadable(ReadError):
    """The file cannot be opened: permissions, a link loop, gone in the meantime."""

    code = "cannot-open"


class WorkspaceLocked(CogniCraftError):
    """Another process holds the workspace; the message names it."""

    exit_code, http_status, code = 5, 423, "locked"


class EmbedderMismatch(CogniCraftError):
    """The workspace was made with another encoder than the one asked for."""

    exit_code, http_status, code = 6, 409, "embedder-mismatch"


class WorkspaceFormat(CogniCraftError):
    """The workspace was written by a version whose format this one does not read."""

    exit_code, http_status, code = 6, 409, "workspace-format"


class MissingExtra(CogniCraftError):
    """An optional part is not installed; the remedy is the line that installs it."""

    exit_code, http_status, code = 7, 501, "missing-extra"

    def __init__(self, name: str, *, extra: str) -> None:
        super().__init__(
            f"{name} needs a package that is not installed.",
            remedy=f'Install it with: pip install "cognicraft[{extra}]"',
        )


class ModelFileError(CogniCraftError):
    """A model file is absent, damaged or of another version."""

    exit_code, http_status, code = 7, 500, "model-file"

    def __init__(self, name: str, *, reason: str, remedy: str) -> None:
        super().__init__(f"The model file {name} cannot be used: {reason}.", remedy=remedy)


class EngineError(CogniCraftError):
    """The engine failed or cannot be reached; nothing that was acknowledged is lost."""

    exit_code, http_status, code = 8, 502, "engine"


class ModelError(CogniCraftError):
    """A language model, encoder or reranker that runs elsewhere failed; the message names it."""

    exit_code, http_status, code = 9, 502, "model"


class ModelUnavailable(ModelError):
    """It cannot be reached, failed on its side, or broke off; retries did not help."""

    http_status, code = 503, "model-unavailable"


class ModelRateLimited(ModelUnavailable):
    """Too many requests or quota used up; retries did not help."""

    code = "model-rate-limited"


class ModelTimeout(ModelUnavailable):
    """No reply in the time allowed."""

    http_status, code = 504, "model-timeout"


class ModelReplyInvalid(ModelError):
    """The reply does not fit what was asked, also when asked again."""

    code = "model-reply"


class ModelRefused(ModelError):
    """The provider or the model refused to reply (content filter, policy)."""

    code = "model-refused"


class ContextOverflow(ModelError):
    """The prompt is longer than the model reads."""

    code = "context-overflow"


class ModelAuthentication(ModelError):
    """No key, or one that the provider does not accept."""

    code = "model-key"


class ModelNotFound(ModelError):
    """The provider has no model of that name."""

    code = "model-not-found"


class BudgetSpent(ModelError):
    """The budget set for model calls is used up; what was paid for is kept."""

    http_status, code = 402, "budget"


class Cancelled(CogniCraftError):
    """Stopped by the person. What was reported as done is kept; the next run goes on from there."""

    exit_code, http_status, code = 130, 499, "cancelled"
