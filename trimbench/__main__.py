"""``python -m trimbench``."""

from trimbench.cli import main

if __name__ == "__main__":
    main()
