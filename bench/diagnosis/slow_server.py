# SPDX-License-Identifier: Apache-2.0
"""A server that answers late: storage far away, or a service that takes uploads. Prints its port.

A request is two numbers of twelve digits: microseconds until the answer begins, and its length in bytes."""
import socket
import threading
import time


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return data


def serve(connection):
    try:
        while request := read_exactly(connection, 24):
            time.sleep(int(request[:12]) / 1e6)
            connection.sendall(b"a" * int(request[12:]))
    except OSError:  # the client went away
        pass
    finally:
        connection.close()


def main():
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
