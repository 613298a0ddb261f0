"""`python -m narrows`: the command `narrows`."""

from narrows.cli.main import main

if __name__ == "__main__":
    main()
