"""`python -m hipmdp …` is `hipmdp …`."""

from hipmdp.cli import main

if __name__ == "__main__":
    main()
