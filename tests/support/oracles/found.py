"""Schedules of the model of freshness that were once answered wrongly; each is played in every gate."""

from support.oracles.freshness import Crash, Edit, Foreign, Input, Lose, Schedule
from support.servers.honest import CONFIGURATION, IGNORED, PACKAGE
from support.servers.honest_kinds import KINDS
from support.watching.virtual import Loss

_KINDS = {kind.name: kind for kind in KINDS}

FOUND = {
    "an answer in two parts, a file written between them": Schedule(
        _KINDS["on demand"],
        (
            Edit(0.001, {"c": None}, given=True),
            Edit(0.40001, {"c": 4, "b": None, "a": 3}),
            Edit(0.02002, {"b": None}, given=True),
            Foreign(1.50003, {"b": 4}),
            Foreign(0.12004, {"b": 4}),
        ),
        (9, 2, 16, 12, 13, 13, 7, 6, 8, 9, 22, 1, 11, 18, 9, 17, 18, 11, 5, 2, 14, 3, 11, 14, 10, 8, 2, 4, 7, 18, 4),
    ),
    "an answer in two parts, an ignored file written between them": Schedule(
        _KINDS["on demand"],
        (
            Foreign(0.2, {IGNORED: 1}),
            Edit(6.00001, {"b": 1}, given=True),
            Edit(0.12002, {"c": None, "a": 4}, given=True),
            Foreign(0.12003, {IGNORED: 2}),
        ),
        (7, 3, 15, 6, 19),
    ),
    "a server that dies before its check begins": Schedule(
        _KINDS["versioned, twice"],
        (
            Edit(0.003, {"c": 0}),
            Edit(0.00101, {"b": 0}),
            Crash(0.80002),
            Input(0.06003, PACKAGE, 1),
            Crash(1.50004),
            Foreign(1.50005, {IGNORED: 0}),
            Edit(0.20006, {"b": 4}),
            Crash(0.12007),
        ),
        (7, 1, 3, 6, 17, 12, 10, 19, 3, 23, 18, 0, 19, 7, 18, 17, 0, 16, 10, 13, 1, 10, 9),
    ),
    "a text that was given just before another wrote the file, and a new server": Schedule(
        _KINDS["versioned"],
        (
            Edit(0.2, {"c": 0, "a": 4}, cancel_after=0.1),
            Edit(0.40001, {"c": 4, "a": 3, "b": 0}),
            Edit(0.20002, {"a": None, "b": 1, "c": 2}, given=True),
            Input(0.00103, CONFIGURATION, 1),
            Foreign(0.00104, {"b": 3, "c": 2}),
            Edit(0.00305, {"c": 0}, cancel_after=0.0007, given=True),
            Edit(6.00006, {"a": 4, "c": 0}, given=True),
        ),
        (1, 23, 5, 23, 5, 22, 21, 12, 11, 18, 1, 15, 21, 19, 11, 20, 15, 19, 4, 20, 4, 6, 0),
    ),
    "a watcher that breaks before a question, and then a document that is opened": Schedule(
        _KINDS["silent, barrier, versioned"],
        (
            Foreign(0.06, {"a": 3, "b": 0}),
            Edit(0.00051, {"b": 2, "a": None}, given=True),
            Input(0.00102, PACKAGE, 1),
            Foreign(0.40003, {"b": 3, "a": 2}),
            Lose(0.00104, Loss.BROKEN),
            Edit(0.00055, {"c": 1, "b": 4}),
        ),
        (3, 4, 22, 23, 1, 18, 20, 16, 13, 14, 14, 1, 23, 16, 13, 10, 22, 4, 8, 1, 14),
    ),
    "an answer that nothing has changed, about a list that another file's answer has replaced": Schedule(
        _KINDS["pull registered late"],
        (
            Edit(1.5, {"c": 0}),
            Foreign(0.06001, {"b": 4, "a": 2}),
            Edit(3.50002, {"b": 1, "a": 0, "c": 3}),
            Foreign(0.02003, {IGNORED: 0}),
            Foreign(0.20004, {IGNORED: 0}),
            Edit(0.00105, {"b": 0, "a": 4, "c": 4}),
            Edit(0.20006, {"b": 4}),
        ),
        (2, 4, 5, 5, 3, 4, 5, 3, 0, 2, 2, 5, 2, 2, 1, 3, 5, 3, 3, 3, 3, 3, 2, 2, 2, 0, 3, 1, 4, 1, 2, 4, 2, 0, 3),
    ),
    "the same while it compiles": Schedule(
        _KINDS["pull, compiling after a save"],
        (
            Foreign(0.02, {"a": 3, "b": 3}),
            Edit(0.00051, {"c": 1}),
            Edit(0.12002, {"b": 4}, given=True),
            Foreign(0.20003, {"a": 0}),
            Foreign(0.12004, {"b": 3}),
            Edit(0.40005, {"b": 3, "a": 3, "c": 3}),
            Lose(6.00006, Loss.NONE),
            Input(6.00007, PACKAGE, 1),
        ),
        (2, 5, 1, 5, 5, 0, 1, 2, 1, 0, 4, 3, 1, 4, 4, 3, 5),
    ),
    "a text that was given, overtaken while it is looked whether it stands": Schedule(
        _KINDS["pull, parsing when asked"],
        (
            Foreign(0.06, {"a": 4, "b": 4}),
            Foreign(1.50001, {"b": 2, "c": 0}),
            Edit(3.50002, {"a": 3, "c": 0}, cancel_after=1.0, given=True),
            Foreign(0.02003, {"c": 1, "a": 4}),
            Edit(0.00054, {"c": 0}, cancel_after=1.0, given=True),
            Edit(0.20005, {"b": 0}, given=True),
            Crash(0.12006),
        ),
        (1, 0, 3, 4, 4, 3, 1, 3, 3, 0, 5, 1, 5, 1, 2, 4, 4, 5, 5, 0, 5, 1, 5, 3),
    ),
    "an answer from a moment when it did not work": Schedule(
        _KINDS["pull, quiescent"],
        (
            Lose(0.0005, Loss.BEHIND),
            Crash(0.00101),
            Foreign(0.00102, {IGNORED: 2}),
            Edit(0.40003, {"b": 3, "a": 3}),
            Foreign(6.00004, {IGNORED: 0}),
        ),
        (5, 2, 5, 4, 3, 1, 4, 2, 1, 3, 2, 0, 5, 5, 2, 5, 3, 4, 4, 1, 3, 2, 3, 5, 0, 4, 0, 2, 4, 2, 2, 0, 4, 2, 5),
    ),
    "a file that changes between the start of a new server and the opening of its documents": Schedule(
        _KINDS["versioned"],
        (
            Foreign(0.02, {"b": 3}),
            Edit(0.80001, {"a": 1}, cancel_after=0.1),
            Lose(0.00302, Loss.BROKEN),
            Input(0.02003, PACKAGE, 0),
            Edit(3.50004, {"c": 0, "b": 1, "a": 3}),
            Crash(0.40005),
            Edit(0.06006, {"b": 4, "c": 4, "a": 0}, given=True),
            Foreign(6.00007, {"b": 4, "a": 3}),
        ),
        (14, 6, 14, 20, 18, 10, 23, 10, 13, 5, 7, 4, 4, 7, 10, 5, 0, 22, 1, 7, 6, 12, 2, 18),
    ),
}
