"""Trains with the Hugging Face trainer and keeps the requests of its Kubeflow callback.

The callback sends the last losses that the trainer logged, at most every five seconds.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import hf_trainer
from truth import Truth

FOLDER = Path(os.environ.get("OUTPUT", "."))


class Latest:
    """Replaces `Truth`: holds the losses that the next request will contain."""

    def __init__(self) -> None:
        self.known = {}

    def loss(self, phase, name, value, mean, **facts) -> None:
        kept = {fact: facts[fact] for fact in ("epoch", "global_step")}
        self.known[name] = {"phase": phase, "name": name, "value": value, "mean": mean, **kept}


class Controller(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        request = {"path": self.path, "content_type": self.headers["Content-Type"], "body": body}
        with open(FOLDER / "requests.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(request) + "\n")
        for loss in self.server.latest.known.values():
            self.server.truth.loss(**loss)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_) -> None:
        pass


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Controller)
    server.latest, server.truth = Latest(), Truth()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    token = FOLDER / "token"
    token.write_text("a token")
    path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/words/status"
    os.environ["KUBEFLOW_TRAINER_SERVER_URL"] = f"http://127.0.0.1:{server.server_port}{path}"
    os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"] = str(token)
    recorder = hf_trainer.Recorder()
    recorder.truth = server.latest
    hf_trainer.main(recorder)


if __name__ == "__main__":
    main()
