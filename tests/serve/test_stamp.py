import copy
import pickle

import pytest

from app.domain.errors import InternalError
from app.serve.issue import issue_stamp
from app.serve.stamp import Sealed, Stamp, is_genuine, seal, seal_plain


def test_what_serve_seals_is_genuine() -> None:
    sealed = seal([issue_stamp("r1"), issue_stamp("r1")], b"page")
    assert is_genuine(sealed)
    assert (sealed.release_id, sealed.body) == ("r1", b"page")
    assert is_genuine(seal_plain(b"page"))


def test_a_seal_made_by_hand_is_not_genuine() -> None:
    forged = object.__new__(Sealed)
    object.__setattr__(forged, "body", b"page")
    object.__setattr__(forged, "release_id", "r1")
    assert not is_genuine(forged)
    assert not is_genuine("seal")
    assert not is_genuine(None)


def test_a_copy_is_not_genuine() -> None:
    with pytest.raises(TypeError, match="process"):
        copy.copy(seal_plain(b"page"))
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(issue_stamp("r1"))


def test_a_seal_does_not_change() -> None:
    sealed = seal_plain(b"page")
    with pytest.raises(AttributeError):
        sealed.body = b"other"
    stamp = issue_stamp("r1")
    with pytest.raises(AttributeError):
        stamp.release_id = "r2"


def test_bytes_need_answers_of_exactly_one_release() -> None:
    with pytest.raises(InternalError):
        seal([], b"page")
    with pytest.raises(InternalError):
        seal([issue_stamp("r1"), issue_stamp("r2")], b"page")


def test_a_stamp_made_by_hand_seals_nothing() -> None:
    forged = object.__new__(Stamp)
    object.__setattr__(forged, "release_id", "r1")
    with pytest.raises(InternalError):
        seal([forged], b"page")
