from __future__ import annotations

import pickle

import pytest

from binlane.errors import (
    BinlaneError,
    ChecksumError,
    CodecError,
    ConfigError,
    CorruptStoreError,
    DefinitionError,
    DependencyError,
    NotLoggableError,
    PartialTransactionError,
    PartialWriteError,
    PeerError,
    StatementError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    TruncatedError,
    UnsafeStatementError,
    UnsupportedError,
)


@pytest.mark.parametrize(
    "error, text",
    [
        (CodecError("what", offset=3), "what"),
        (TruncatedError("what").at("f.000001", 256), "what (f.000001:256)"),
        (StatementError("what", errno=1, sqlstate="HY000"), "what"),
        (
            PartialWriteError("why"),
            "[11314] This statement cannot be replicated safely: why",
        ),
        (PeerError("gone", peer="mariadb://h:3306", phase="dump"), "gone (mariadb://h:3306, dump)"),
        (StoreFullError("no room", path="/data"), "no room (/data)"),
        (ConfigError("no number", key="listen.port"), "no number (listen.port)"),
    ],
)
def test_errors_say_what_and_where(error: BinlaneError, text: str) -> None:
    assert str(error) == text
    assert error.hint == ""


@pytest.mark.parametrize(
    "error",
    [
        TruncatedError("what", offset=3, hint="why").at("f.000001", 256),
        PartialWriteError("why", hint="what to do"),
        PeerError("gone", peer="mariadb://h:3306", phase="dump", errno=1236),
        StoreFullError("no room", path="/data", hint="make some"),
        ConfigError("no number", key="listen.port"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_other_processes_arrive_as_they_were(error: BinlaneError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))


@pytest.mark.parametrize(
    "parent, children",
    [
        (BinlaneError, [CodecError, StatementError, PeerError, StoreError, ConfigError]),
        (CodecError, [TruncatedError, ChecksumError, UnsupportedError]),
        (StatementError, [UnsafeStatementError, NotLoggableError, DefinitionError]),
        (UnsafeStatementError, [PartialWriteError, DependencyError, PartialTransactionError]),
        (StoreError, [CorruptStoreError, StoreFullError, StoreLockedError]),
    ],
)
def test_the_tree_tells_who_must_act(
    parent: type[BinlaneError], children: list[type[BinlaneError]]
) -> None:
    assert all(child.__base__ is parent for child in children)


def test_the_first_to_know_the_place_says_it() -> None:
    error = CodecError("what").at("inner", 4).at("outer", 8)
    assert (error.file, error.position) == ("inner", 4)


def test_unsafe_statements_become_error_1() -> None:
    error = DependencyError("why", hint="do this")
    assert (error.errno, error.sqlstate, error.hint) == (1, "HY000", "do this")
