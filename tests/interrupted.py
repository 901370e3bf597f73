"""A program that is interrupted while it loads."""

#: Code before a program's own: its first argument, ``where``, is taken off; once the module of that name is
#: imported, the process gets a Ctrl-C.
AT_IMPORT = """
import builtins, os, signal, sys
where = sys.argv.pop(1)
real = builtins.__import__
def watch(name, *rest):
    if name == where:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)
builtins.__import__ = watch
"""
