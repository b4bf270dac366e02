"""`python -m kustos` is the `kustos` command."""

from kustos.cli import main

if __name__ == "__main__":
    main()
