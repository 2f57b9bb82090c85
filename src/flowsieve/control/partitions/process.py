"""`python -m flowsieve.control.partitions.process --fd N`: a configurator at work on a socket that it was given."""

from __future__ import annotations

import argparse
import signal
import socket

from flowsieve.control.partitions.serving_orders import serve_orders


def main() -> None:
    parser = argparse.ArgumentParser(description="a configurator for the process that started it")
    parser.add_argument("--fd", type=int, required=True, help="the socket on which orders come")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    with socket.socket(fileno=parser.parse_args().fd) as connection:
        serve_orders(connection)


if __name__ == "__main__":
    main()
