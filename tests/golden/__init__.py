"""The golden record: what the package answered on small samples, so that every change is seen.

    python -m pytest tests/golden                  the quick cells; --all, every cell
    python -m pytest tests/golden -k news-nblinear some of them
    python -m tests.golden.make news-nblinear      write these anew, where answers are to change
    python -m tests.golden.compare OTHER           compare bits with another checkout

`samples` makes rows, `cell`, `texts` and `tables` say what is asked of which model, `exports` what
targets answer, and `record` how answers are stored and compared. The record is a JSON file for each
kind of rows; ``files`` holds model files of the last landed version.
"""
