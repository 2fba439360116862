import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import official`


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    """No test reads or writes the data folder of whoever runs it."""
    monkeypatch.setenv("DLCOURSE_DATA", str(tmp_path / "data"))


@pytest.fixture
def server(monkeypatch):
    """A server on this machine: .url, .files {"/name": bytes}, .asked (names, in order), .broken (answers 503 so often)."""
    state = SimpleNamespace(files={}, asked=[], broken=0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append(self.path)
            found = self.path in state.files and state.broken <= 0
            self.send_response(200 if found else 503 if state.broken > 0 else 404)
            state.broken -= 1
            data = state.files[self.path] if found else b""
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)  # no pause between attempts
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}"
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def closed_port(monkeypatch):
    """An address at which nobody answers, as where there is no network."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as http:
        return f"http://127.0.0.1:{http.server_port}"
