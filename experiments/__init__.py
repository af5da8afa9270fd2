"""The experiments of the paper: data, settings, tables and figures. Run `python -m experiments NAME`."""
