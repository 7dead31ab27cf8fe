"""BEGIN, COMMIT, ROLLBACK and savepoints."""

from __future__ import annotations

from binlane.session.report import Refusal
from binlane.session.state import Command, SessionState
from binlane.session.transaction import EngineUse, Savepoint, Work

_CHAIN = "AND CHAIN"


def begin(state: SessionState, command: Command) -> None:
    """START TRANSACTION and BEGIN."""
    state.begin()
    if "WITH CONSISTENT SNAPSHOT" in command.facts.options:
        state.transaction.engines["INNODB"] = EngineUse(has_two_phases=True)
        if state.server.is_mariadb:
            for binlog in state.each_logging().values():
                binlog.is_registered = True


def commit(state: SessionState, command: Command) -> None:
    """COMMIT."""
    isolation = state.current_isolation
    state.commit()
    _chain(state, command, isolation)


def roll_back(state: SessionState, command: Command) -> None:
    """ROLLBACK."""
    isolation = state.current_isolation
    state.roll_back()
    _chain(state, command, isolation)


def _chain(state: SessionState, command: Command, isolation: object) -> None:
    if _CHAIN in command.facts.options:
        state.begin()
        assert isinstance(isolation, type(state.isolation))
        state.isolation = isolation


def refuse_in_xa(state: SessionState) -> None:
    """Refuse what the state of the XA transaction does not allow."""
    phase = "NON-EXISTING" if state.xa_phase is None else state.xa_phase.value
    state.fail(
        Refusal(
            errno=1399,
            sqlstate="XAE07",
            symbol="ER_XAER_RMFAIL",
            message=(
                "XAER_RMFAIL: The command cannot be executed when global transaction is in the  "
                f"{phase} state"
            ),
        )
    )


def set_savepoint(state: SessionState, command: Command) -> None:
    """SAVEPOINT; outside a transaction it means nothing."""
    if not state.is_in_transaction:
        return
    name = command.facts.name
    _release(state, name)
    state.savepoints.append(Savepoint(name, frozenset(state.transaction.engines)))
    for binlog in state.each_logging().values():
        binlog.set_savepoint(name)
    if state.safety is not None:
        state.safety.savepoint(name)


def roll_back_to(state: SessionState, command: Command) -> None:
    """ROLLBACK TO SAVEPOINT."""
    savepoint = _find(state, command.facts.name)
    if savepoint is None:
        _unknown(state, command.facts.name)
        return
    for later in state.savepoints[state.savepoints.index(savepoint) + 1 :]:
        _forget(state, later.name)
    del state.savepoints[state.savepoints.index(savepoint) + 1 :]
    nothing = Work()
    for name, binlog in state.binlogs.items():
        binlog.roll_back_to(command.facts.name, state.frame(name, nothing))
    state.transaction.keep_only(savepoint.engines)
    if state.safety is not None:
        state.safety.rolled_back_to(savepoint.name)


def release_savepoint(state: SessionState, command: Command) -> None:
    """RELEASE SAVEPOINT: it and all later ones are gone; nothing is logged."""
    savepoint = _find(state, command.facts.name)
    if savepoint is None:
        _unknown(state, command.facts.name)
        return
    for gone in state.savepoints[state.savepoints.index(savepoint) :]:
        _forget(state, gone.name)
    del state.savepoints[state.savepoints.index(savepoint) :]


def _release(state: SessionState, name: str) -> None:
    """A new savepoint takes the place of one of the same name."""
    known = _find(state, name)
    if known is not None:
        state.savepoints.remove(known)
        _forget(state, name)


def _find(state: SessionState, name: str) -> Savepoint | None:
    return next((one for one in state.savepoints if one.name.lower() == name.lower()), None)


def _forget(state: SessionState, name: str) -> None:
    for binlog in state.binlogs.values():
        binlog.forget_savepoint(name)


def _unknown(state: SessionState, name: str) -> None:
    state.fail(
        Refusal(
            errno=1305,
            sqlstate="42000",
            symbol="ER_SP_DOES_NOT_EXIST",
            message=f"SAVEPOINT {name} does not exist",
        )
    )
