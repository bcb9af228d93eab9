"""`python -m crfkit` is the command line."""

from crfkit.cli import main

if __name__ == "__main__":
    main(prog_name="crfkit")
