"""The process that a worker starts for one job; its standard input tells what to do."""

from app.cli.last_word import install_last_word

if __name__ == "__main__":
    install_last_word()
    from app.bootstrap.jobs import perform_errand
    from app.office.process import take_errand

    take_errand(perform_errand)
