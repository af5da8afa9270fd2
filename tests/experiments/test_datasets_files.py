"""Where a file of data is looked for, and what becomes of a wrong one. Downloads come from a local server."""

import gzip
import hashlib
import io
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from experiments.datasets import _crime, _mnist, _people, _stand_ins, _wine
from experiments.datasets._files import DataFile, DataFileError, Source, find, read_file, read_files

CONTENT = b"x,y\n1,2\n" * 50
NAME = "toy/toy.csv"


def known(*sources, origin="", content=CONTENT, name=NAME):
    return DataFile(name, hashlib.sha256(content).hexdigest(), len(content), tuple(sources), origin)


def zipped(member, content=CONTENT):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return buffer.getvalue()


class Publisher:
    """A web server: what it serves by path, and which paths were asked for."""

    def __init__(self):
        self.files, self.asked, self.address = {}, [], ""

    def serve(self, path, body, declared=None, member=None):
        self.files[path] = (body, len(body) if declared is None else declared)
        return Source(self.address + path, member)


@contextmanager
def running_publisher():
    publisher = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            publisher.asked.append(self.path)
            if self.path not in publisher.files:
                self.send_error(404)
                return
            body, declared = publisher.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(declared))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        publisher.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield publisher
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def publisher(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with running_publisher() as running:
        yield running


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """(MOEW_DATA, the cache's folder), both empty."""
    named, cache = tmp_path / "data", tmp_path / "cache" / "moew"
    named.mkdir()
    monkeypatch.setenv("MOEW_DATA", str(named))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    return named, cache


def put(folder, body, name=NAME):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_named_folder_comes_before_the_cache_and_the_cache_before_the_publisher(folders, publisher):
    named, cache = folders
    file = known(publisher.serve("/toy.csv", CONTENT))
    in_cache = put(cache, CONTENT)
    in_named = put(named, CONTENT)
    assert find(file) == in_named
    in_named.unlink()
    assert find(file) == in_cache
    assert read_file(file) == CONTENT
    assert publisher.asked == []
    in_cache.unlink()
    assert find(file) is None
    assert read_file(file) == CONTENT
    assert publisher.asked == ["/toy.csv"]


def test_a_download_is_kept_and_not_repeated(folders, publisher):
    file = known(publisher.serve("/toy.csv", CONTENT))
    assert read_file(file) == read_file(file) == CONTENT
    assert publisher.asked == ["/toy.csv"]
    assert files_below(folders[1]) == [NAME]  # no part of a download is left beside it
    assert files_below(folders[0]) == []  # the user's own folder is not written to


def test_without_variables_the_cache_is_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MOEW_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    path = put(tmp_path / ".cache" / "moew", CONTENT)
    assert find(known()) == path


def test_compression_makes_no_difference(folders, publisher):
    named, _ = folders
    for level in (1, 9):
        path = put(named, gzip.compress(CONTENT, level), NAME + ".gz")
        assert read_file(known()) == CONTENT
    path.unlink()
    assert read_file(known(publisher.serve("/toy.csv.gz", gzip.compress(CONTENT)))) == CONTENT


def test_a_member_of_a_zip_archive(publisher):
    assert read_file(known(publisher.serve("/toy.zip", zipped("toy.csv"), member="toy.csv"))) == CONTENT


def test_the_next_source_is_tried(publisher):
    file = known(Source(publisher.address + "/gone"), publisher.serve("/toy.csv", CONTENT))
    assert read_file(file) == CONTENT
    assert publisher.asked == ["/gone", "/toy.csv"]


OTHER = CONTENT.replace(b"1", b"3")


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        (OTHER, {}, f"SHA-256 {hashlib.sha256(OTHER).hexdigest()} instead of"),
        (CONTENT[:-1], {}, "399 bytes instead of 400"),
        (CONTENT + b"!", {}, "more than 400 bytes instead of 400"),
        (gzip.compress(bytes(10_000_000)), {}, "more than 400 bytes instead of 400"),
        (gzip.compress(CONTENT)[:-9], {}, "cannot be decompressed"),
        (CONTENT[:100], {"declared": 400}, "IncompleteRead.100 bytes read, 300 more expected"),
        (zipped("other.csv"), {"member": "toy.csv"}, "cannot be decompressed .*no item named 'toy.csv'"),
        (CONTENT, {"member": "toy.csv"}, "cannot be decompressed .*not a zip file"),
    ],
    ids=["other", "short", "long", "bomb", "cut gz", "connection cut", "no member", "no zip"],
)
def test_a_wrong_download_is_refused_and_not_kept(folders, publisher, body, options, reason):
    file = known(publisher.serve("/toy", body, **options))
    with pytest.raises(DataFileError, match=rf"(?s){publisher.address}/toy .*{reason}.*Set .*MOEW_DATA"):
        read_file(file)
    assert files_below(folders[1]) == []


def test_what_was_tried_and_what_to_do_is_said(folders, publisher):
    named, cache = folders
    gone = Source(publisher.address + "/gone.csv")
    first, second = known(gone, publisher.serve("/wrong.csv", OTHER)), known(name="toy/more.csv")
    with pytest.raises(DataFileError) as caught:
        read_files([first, second])
    message = str(caught.value)
    assert message.splitlines()[:4] == [
        "toy/toy.csv was not found:",
        f"  - {named} has no such file",
        f"  - {cache} has no such file",
        f"  - {gone.url} answered 404 Not Found",
    ]
    assert f"{publisher.address}/wrong.csv has another file: its content has SHA-256" in message
    assert message.endswith("MOEW_DATA to a folder with: toy/toy.csv[.gz], toy/more.csv[.gz].")


def test_a_publisher_out_of_reach(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with running_publisher() as stopped:
        source = stopped.serve("/toy.csv", CONTENT)
    with pytest.raises(DataFileError, match=r"/toy\.csv cannot be reached: .*refused"):
        read_file(known(source))


def test_a_file_that_exists_at_no_publisher_has_to_be_given():
    with pytest.raises(DataFileError, match=r"cannot be downloaded: made by hand\nSet .* with: toy/toy\.csv"):
        read_file(known(origin="made by hand"))


@pytest.mark.parametrize(
    "body",
    [OTHER, b"", gzip.compress(CONTENT)[:-9], gzip.compress(OTHER)],
    ids=["other", "empty", "cut", "other gz"],
)
def test_a_wrong_copy_of_the_users_is_an_error_even_where_there_is_a_right_one(folders, publisher, body):
    named, cache = folders
    path = put(named, body)
    put(cache, CONTENT)
    with pytest.raises(DataFileError, match=f"{path} is not the file that moew knows.*Remove it"):
        read_file(known(publisher.serve("/toy.csv", CONTENT)))
    assert publisher.asked == []


def test_a_named_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("MOEW_DATA", str(tmp_path / "typo"))
    with pytest.raises(DataFileError, match="typo' *, which is not a folder"):
        read_file(known())


def test_a_cache_that_cannot_be_written(publisher, monkeypatch, tmp_path):
    blocked = put(tmp_path, b"", "a-file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(DataFileError, match="downloaded but cannot be kept.*Set XDG_CACHE_HOME"):
        read_file(known(publisher.serve("/toy.csv", CONTENT)))


def test_every_file_says_where_it_comes_from():
    single = (_wine.SAMPLE, _wine.FULL, _stand_ins.CREDIT, _stand_ins.BLOG, _people.COMPAS)
    for file in (*_mnist.FILES, *_crime.FILES, *_people.ADULT, *single):
        assert bool(file.sources) != bool(file.origin)
        assert all(source.url.startswith("https://") for source in file.sources)
