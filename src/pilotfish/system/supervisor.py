"""The program between us and one language server: it owns the server's process tree and ends all of it.

Run as `python -I -S -c BOOTSTRAP FOLDER CONTROL OWNER NAME`: FOLDER holds this file, CONTROL is one end of a socket
pair, OWNER the pid that has the other end, NAME is for the process list. All that the two say to each other:

    us → supervisor    the order (see `read_order`), then any byte: SIGTERM to the whole tree; end of file: SIGKILL
    supervisor → us    `started PID HELD…` or `failed STAGE ERRNO`; when nothing of the tree is left, `exited CODE`

HELD is what the kernel holds the server to, where the order asks for that: see `confinement`.

Rules:
- The server gets descriptors 0, 1 and 2 as they are. Not a byte is copied, and no other descriptor is passed on.
- The kernel closes our end of the pair however we die, so `kill -9` of us is an end of file here. A forked copy of us
  may hold the socket open, so our death is watched as well, from before the first word.
- On Linux this process is the child subreaper: what double-forks or calls `setsid` is re-parented to it, and
  "no child is left" is what the kernel says, not a guess. `kill -9` of this process takes the server with it
  (`PR_SET_PDEATHSIG`); what the server had started by then carries a tag, by which `system.process` finds it.
- When the server ends on its own, whatever it left behind is ended too.
- The order travels over the socket, because an environment on a command line could be read by every user, and one
  given to this interpreter could stop it from starting (`LD_PRELOAD`) or be altered by it (`LC_CTYPE`).

Elsewhere (macOS) there is no subreaper: the server's process group is ended, also when we die; a process that left that
group is found by its tag and ended, by a program that this one starts, or by `system.process` when this one was killed;
it stays when both were. A tree that forks and calls `setsid` without pause outruns any scan; only a container holds it.

It is a program of its own, and imports next to nothing: start time and memory are paid once per server.
"""

import ctypes
import errno
import os
import select
import sys
import time

if sys.platform == "win32":
    raise ImportError("Windows ends a tree of processes by a job")

# `signal` wraps this module in enums: 7 ms of the 20 that an import-everything start took. `typing` costs as much.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal


PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

IGNORABLE = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
)
"""What shells and interpreters set to be ignored, for us or for those that we started from."""

RESCAN_MILLISECONDS = 50
"""While ending a tree: look again this long after the last death, in case a fork escaped the look before."""

LOOK_MILLISECONDS = 1000
"""Between looks for the owner, where nothing tells of its death: a forked copy of it keeps the socket open."""

GIVE_UP_SECONDS = 30.0
"""A process stuck in the kernel or owned by root outlives SIGKILL; waiting for it for ever would not help."""


END_STRAYS = """import sys; sys.path.append(sys.argv[1])
from pilotfish.system.process import kill_strays; kill_strays(sys.argv[2], None)"""
"""Looking at the environment of other processes needs more than this program has."""


def run() -> None:
    """Be the program; leaves without the interpreter's own clean-up, which would only take time."""
    os._exit(main(int(sys.argv[2]), int(sys.argv[3])))


def main(control: int, owner: int) -> int:
    """Start the server, serve the control socket until server or owner is gone, leave nothing; return its code."""
    os.set_inheritable(control, False)  # noqa: FBT003 - its only signature
    wake = arm_signals()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        # Readable when that process is gone, where the system has such a thing.
        death = os.pidfd_open(owner) if sys.platform == "linux" else None
    except (AttributeError, OSError):
        death = None
    order = read_order(control, owner, death)
    if os.getppid() != owner or order is None:  # it died, perhaps before it could be watched
        return 0
    server, held, failure = start(*order)
    if failure:
        report(control, b"failed %s\nexited 127" % failure)
        return 127
    tree = ProcessTree(server, wake)
    try:
        report(control, b" ".join((b"started %d" % server, *held)))
        serve(tree, control, owner, death)
    finally:
        tree.end()
    code = -signal.SIGKILL if tree.status is None else os.waitstatus_to_exitcode(tree.status)
    if sys.platform != "linux":
        # Those that left the server's group; also for a living owner, which may be killed while it looks for them.
        packages, token = os.path.dirname(os.path.dirname(sys.argv[1])), os.environ.get("PILOTFISH_TREE", "")
        # Without the tag: it would be one of them itself.
        os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-I", "-c", END_STRAYS, packages, token], {}), 0)
    report(control, b"exited %d" % code)
    return code if code >= 0 else 128 - code


def read_order(control: int, owner: int, death: int | None) -> tuple[bytes, list[bytes], list[bytes]] | None:
    """Read folder, arguments and environment: `LENGTH`, a newline, then `folder, count, argument…, K=V…` joined by NUL.

    A variable without a name asks for a confinement (`confined` reads it).
    None when the owner was gone before it had said everything.
    """
    heard = b""
    while b"\n" not in heard:
        heard += (data := hear(control, owner, death))
        if not data:
            return None
    length, _, body = heard.partition(b"\n")
    while len(body) < int(length):
        body += (data := hear(control, owner, death))
        if not data:
            return None
    folder, count, *fields = body.split(b"\0")
    return folder, fields[: int(count)], fields[int(count) :]


def start(folder: bytes, arguments: list[bytes], variables: list[bytes]) -> tuple[int, list[bytes], bytes]:
    """Fork and execute the server, and let go of its standard streams; return pid, confinement and failure, if any."""
    supervisor = os.getpid()
    words, saying = os.pipe()
    try:
        server = os.fork()
    except OSError as error:
        return 0, [], b"fork %d" % (error.errno or 0)
    if server == 0:
        try:
            become(supervisor, folder, arguments, variables, saying)
        finally:
            os._exit(127)
    os.close(saying)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor, inheritable=False)
    os.close(null)
    said = b""
    while data := os.read(words, 256):  # `execve` closes the other end: no failure to read means that it worked
        said += data
    os.close(words)
    held, _, failure = said.rpartition(b"\n")
    return server, held.split(), failure


def become(supervisor: int, folder: bytes, arguments: list[bytes], variables: list[bytes], saying: int) -> None:
    """In the child: say what holds it, and turn into the server. Returns only when that failed, and has said why."""
    stage = b"folder"
    try:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != supervisor:  # it died before the line above could take effect
                return
        # Ignored signals stay ignored across `execve`; a server must be able to die of them.
        for number in IGNORABLE:
            signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        stage = b"program"
        pairs = (variable.partition(b"=") for variable in variables)
        environment = {name: value for name, _, value in pairs if name}
        orders = [variable[1:] for variable in variables if variable.startswith(b"=")]
        if orders:
            os.write(saying, b" ".join(confined(orders)) + b"\n")
        os.execve(arguments[0], arguments, environment)  # noqa: S606 - running the server is the point
    except OSError as error:
        os.write(saying, b"%s %d" % (stage, error.errno or 0))


def confined(orders: list[bytes]) -> list[bytes]:
    """Confine this process: `network=closed`, and `KIND=FOLDER` as `confinement.confine` has them; return what holds.

    With `required=` it raises where the kernel does not hold it to its files.
    """
    if TYPE_CHECKING:
        from pilotfish.system import confinement
    else:
        import confinement  # beside this file; only servers of untrusted folders pay for it
    folders: dict[bytes, list[bytes]] = {b"sealed": [], b"private": [], b"readable": [], b"writable": []}
    for kind, _, value in (order.partition(b"=") for order in orders):
        folders.setdefault(kind, []).append(value)
    held = confinement.confine(folders, network=folders.get(b"network") != [b"closed"])
    if b"required" in folders and "files" not in held:
        raise PermissionError(errno.EPERM, "not confined")
    return [word.encode() for word in held]


def serve(tree: "ProcessTree", control: int, owner: int, death: int | None) -> None:
    """Pass on what the owner says, until the server or the owner is gone."""
    while tree.status is None and (ready := wait(owner, death, control, tree.wake)):
        terminate = tree.wake in ready and signal.SIGTERM in os.read(tree.wake, 4096)
        if control in ready:
            if not hear(control, owner, death):
                return
            terminate = True
        if terminate:
            tree.signal(signal.SIGTERM)
        tree.reap()


class ProcessTree:
    """Everything below this process. `status` is how the server ended, in the words of `waitpid`."""

    def __init__(self, server: int, wake: int) -> None:
        self.server = server
        self.wake = wake
        self.status: int | None = None

    def reap(self) -> bool:
        """Collect every child that has ended; return whether one is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.server:
                self.status = status

    def signal(self, number: int) -> None:
        """Signal every process group of the tree.

        By group, because the kernel does that in one step: no member can fork its way out in between.
        """
        for group in groups_below(os.getpid()) if sys.platform == "linux" else {self.server}:
            kill_group(group, number)

    def end(self) -> None:
        """SIGKILL until no child is left; the server's own group first, as nearly always that is all there is."""
        deadline = time.monotonic() + GIVE_UP_SECONDS
        poller = poll_for(self.wake)
        if self.status is None or sys.platform != "linux":
            kill_group(self.server, signal.SIGKILL)
            poller.poll(RESCAN_MILLISECONDS)
        while self.reap() and time.monotonic() < deadline:
            self.signal(signal.SIGKILL)
            if poller.poll(RESCAN_MILLISECONDS):
                os.read(self.wake, 4096)


def groups_below(ancestor: int) -> set[int]:
    """The process groups of all descendants, from `/proc`: pid → (parent, group), then down from the ancestor."""
    family: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as stat:
                    # `pid (name) state parent group …`; the name may hold anything, also spaces and parentheses.
                    fields = stat.read(1024).rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            family[int(name)] = int(fields[1]), int(fields[2])
    below = {ancestor}
    while more := {pid for pid, (parent, _) in family.items() if parent in below and pid not in below}:
        below |= more
    return {family[pid][1] for pid in below - {ancestor}} - {os.getpgrp()}


def kill_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # gone already, or root's


def arm_signals() -> int:
    """Make SIGCHLD and SIGTERM bytes of a pipe, and ignore what a terminal sends; return the end to read from."""
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return wake


def hear(control: int, owner: int, death: int | None) -> bytes:
    """Wait for what the owner says next; nothing when it is gone."""
    try:
        return os.read(control, 65536) if wait(owner, death, control) else b""
    except ConnectionResetError:
        return b""


def wait(owner: int, death: int | None, *descriptors: int) -> list[int]:
    """Those that can be read, as soon as there is one; none when the owner is gone."""
    poller = poll_for(*descriptors, death)
    while os.getppid() == owner:
        ready = [descriptor for descriptor, _ in poller.poll(LOOK_MILLISECONDS if death is None else None)]
        if ready:
            return [] if death in ready else ready
    return []


def poll_for(*descriptors: int | None) -> select.poll:
    poller = select.poll()
    for descriptor in descriptors:
        if descriptor is not None:
            poller.register(descriptor, select.POLLIN)
    return poller


def report(control: int, line: bytes) -> None:
    try:
        os.write(control, line + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return  # nobody is there to read it: the control socket says so next
