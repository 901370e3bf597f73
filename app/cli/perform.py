"""The process that a worker starts for one job; its standard input tells what to do."""

from app.cli.last_word import install_last_word

if __name__ == "__main__":
    install_last_word()
    import os

    from app.bootstrap.jobs import perform_errand
    from app.office.process import take_errand
    from app.watch.logs import LOG_VARIABLE, install_logs

    install_logs(os.environ.get(LOG_VARIABLE, ""))
    take_errand(perform_errand)
