"""How a program of lab/ begins and ends: its page of help, files that are not what was asked for, a reader that has enough."""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import zlib

USAGE = 2  # the exit code, as the command's


def parser(doc):
    """--help prints the page as it stands in the script; argparse takes no % in it for one of its own."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def refuse(text, code=USAGE):
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(code)


@contextlib.contextmanager
def reading(path, expected):
    """What goes wrong while a file is read is the file's fault: it is not what was expected."""
    try:
        yield
    except OSError as error:
        refuse(f"{path}: {error.strerror or error}; expected {expected}")
    except (EOFError, KeyError, IndexError, TypeError, ValueError, zlib.error) as error:
        refuse(f"{path}: {type(error).__name__}: {error}; expected {expected}")


def check_readable(paths, expected):
    """Of files that another program reads, before anything is begun."""
    for path in paths:
        with reading(path, expected), open(path, "rb"):
            pass


def calls_of(path):
    """Of a list of calls, as bench/shapes/*.txt: a line each, and comments behind #."""
    with reading(path, "a list of calls, as bench/shapes/*.txt"):
        lines = [line.split("#")[0].strip() for line in pathlib.Path(path).read_text().splitlines()]
    return [line for line in lines if line]


def run(main):
    """Leaves with what main() returns. Who reads the output may close it (head): what was started is ended by main() then, and nothing
    is said, as of a program that SIGPIPE ended."""
    try:
        try:
            code = main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        code = 128 + signal.SIGPIPE
    except FileNotFoundError as error:
        refuse(f"{error.filename}: {error.strerror}; expected a file or a program that is there")
    except subprocess.CalledProcessError as error:
        refuse(f"{' '.join(map(str, error.cmd))}: exit {error.returncode}{': ' + str(error.stderr).strip() if error.stderr else ''}", 1)
    sys.exit(code)
