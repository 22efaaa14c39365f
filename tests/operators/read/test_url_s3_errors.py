# SPDX-License-Identifier: Apache-2.0
"""The errors of S3, from a server that others have written (moto): each is one of its sample at once, says what to do,
and names no secret."""

import json
import re
import threading
import time
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from test_by_url import FEATURES, tfrecords
from test_url_servers import environment, moto  # noqa: F401

from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage

pytestmark = needs("obstore", "moto", "boto3")
CONTENT = {f"d/{i}": bytes([65 + i]) * (1000 + i) for i in range(4)}
LIST_ONLY = [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]
EVERYTHING = [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]


def policy(statements):
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def call(url, body):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "text/plain"}, method="POST")
    urllib.request.urlopen(request, timeout=60).close()


@pytest.fixture(scope="module")
def server():
    """Moto, which asks for credentials, with a bucket, and those of two users and of a role. One for all tests, as it
    takes long to start and to end."""
    boto3 = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "an-id", "aws_secret_access_key": "a-secret", "region_name": "us-east-1"}
    with moto() as url:
        s3, iam, sts = (boto3.client(service, endpoint_url=url, **keys) for service in ("s3", "iam", "sts"))
        for bucket in ("bucket", "records"):
            s3.create_bucket(Bucket=bucket)
        for key, content in CONTENT.items():
            s3.put_object(Bucket="bucket", Key=key, Body=content)
        users = {}
        for name, statements in {"reader": EVERYTHING, "lister": LIST_ONLY}.items():
            iam.create_user(UserName=name)
            iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy(statements))
            users[name] = iam.create_access_key(UserName=name)["AccessKey"]
        role = iam.create_role(RoleName="role", AssumeRolePolicyDocument=policy([]))["Role"]["Arn"]
        iam.put_role_policy(RoleName="role", PolicyName="p", PolicyDocument=policy(EVERYTHING))
        users["role"] = sts.assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
        s3 = boto3.client("s3", endpoint_url=url, **{**keys, **of(users["reader"])})
        try:
            call(f"{url}/moto-api/reset-auth", "0")  # from now on
            yield SimpleNamespace(url=url, s3=s3, users=users)
        finally:
            call(f"{url}/moto-api/reset-auth", "inf")
            call(f"{url}/moto-api/reset", "")


@pytest.fixture
def account(server, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    storage._connections.clear()
    return server


def of(user, **other):
    """Options with the user's credentials, or others."""
    options = {"aws_access_key_id": user["AccessKeyId"], "aws_secret_access_key": user["SecretAccessKey"]}
    if "SessionToken" in user:
        options["aws_session_token"] = user["SessionToken"]
    return {**options, **{f"aws_{name}": value for name, value in other.items()}}


def build(keys, options, **arguments):
    urls = [k if "://" in k else f"s3://bucket/{k}" for k in keys]

    @pipeline_def(batch_size=len(urls), num_threads=2, storage_options=options, **arguments)
    def pipe():
        return fn.readers.file(files=urls)[0]

    return pipe()


def contents(pipe):
    batch = pipe.run()[0]
    return [bytes(np.asarray(batch.at(i))) for i in range(len(batch))]


# The options, from the users, and what the error says.
REFUSED = {
    "unknown key id": (
        lambda users: of(users["reader"], access_key_id="AKIAUNKNOWN"),
        r"403 Forbidden \(InvalidAccessKeyId\); check the credentials: the server does not know this access key id",
    ),
    "wrong secret": (
        lambda users: of(users["reader"], secret_access_key="another-secret"),
        r"403 Forbidden \(SignatureDoesNotMatch\); check the credentials: the secret access key does not belong to the",
    ),
    "not allowed": (
        lambda users: of(users["lister"]),
        r"403 Forbidden \(AccessDenied\); check the credentials: they do not permit this",
    ),
    "wrong token": (
        lambda users: of(users["role"], session_token="another-token"),
        r"400 Bad Request \(InvalidToken\); check the credentials, what they permit, and whether they have expired",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(account, case, capfd):
    """What is asked for with these credentials, be it an object or a folder's content."""
    make, error = REFUSED[case]
    options = make(account.users)
    begin = time.monotonic()
    pipe = build(["d/0"], options)
    with pytest.raises(RuntimeError, match=f"the server does not allow it: {error}") as caught:
        pipe.run()
    assert "Sample 0 of iteration 0: s3://bucket/d/0" in str(caught.value)
    written = [pipe.errors(), pipe.stats(), caught.value]
    if case != "not allowed":  # who may list
        with pytest.raises(RuntimeError, match=f"does not allow it when s3://bucket was listed: {error}") as caught:
            in_root(options).build()
        written.append(caught.value)
    assert time.monotonic() - begin < 60 and pipe.stats()["remote"]["retries"] == 0
    written += capfd.readouterr()
    for secret in options.values():
        assert not any(secret in f"{w!r} {w}" for w in written)


def in_root(options):
    @pipeline_def(batch_size=4, num_threads=2, storage_options=options)
    def pipe():
        return fn.readers.file(file_root="s3://bucket", file_filters=["*"])[0]

    return pipe()


def test_allowed(account):
    """The same users, where nothing is wrong: else the other tests say nothing."""
    for user in ("reader", "role"):
        assert contents(build(list(CONTENT), of(account.users[user]))) == list(CONTENT.values())
    assert contents(in_root(of(account.users["reader"]))) == list(CONTENT.values())


BAD = {
    "s3://bucket/d/none": r"there is no such object: 404 Not Found \(NoSuchKey\)",
    "s3://none/x": r"there is no such bucket: 404 Not Found \(NoSuchBucket\); check its name, and the endpoint",
    "s3://bucket/d/1": "the server does not allow it: 403 Forbidden; check the credentials",
}


@pytest.fixture
def one_denied(account):
    """The bucket denies d/1 to everybody."""
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/d/1"}
    account.s3.put_bucket_policy(Bucket="bucket", Policy=policy([statement]))
    yield account
    account.s3.delete_bucket_policy(Bucket="bucket")


@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_on_error(one_denied, url, on_error):
    begin = time.monotonic()
    pipe = build(["d/0", url, "d/2", "d/3"], of(one_denied.users["reader"]), on_error=on_error)
    if on_error == "raise":
        with pytest.raises(RuntimeError, match=BAD[url]) as caught:
            pipe.run()
        assert f"Sample 1 of iteration 0: {url}\n" in f"{caught.value}\n"
    else:
        got = contents(pipe)
        assert got[:1] == [CONTENT["d/0"]] and got[-2:] == [CONTENT["d/2"], CONTENT["d/3"]]
        assert len(got) == (3 if on_error == "skip" else 4) and set(got) <= set(CONTENT.values())
        assert re.search(BAD[url], str(pipe.errors()[0])) and url in str(pipe.errors()[0])
    assert time.monotonic() - begin < 60 and pipe.stats()["remote"]["retries"] == 0


@pytest.mark.parametrize(
    "size, error",
    [
        # In moto's words, if it has nothing of what is asked for.
        (0, r"ends before the bytes asked for: 416 [ \w]* \(InvalidRange\); it has changed, or its index is that of"),
        # It sends the part that it has.
        (
            90,
            "ends at byte 90, and 1046 bytes from 0 on were asked for; it has changed, or its index is that of another",
        ),
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_record_beyond_the_end(account, tmp_path, size, error, on_error):
    """Of a file that was written anew since its index was read."""
    tfrecords(tmp_path / "r")
    for path in (tmp_path / "r").iterdir():
        account.s3.put_object(Bucket="records", Key=f"r/{path.name}", Body=path.read_bytes())
    paths = {k: [f"s3://records/r/{i}.{e}" for i in range(2)] for k, e in (("path", "tfrecord"), ("index_path", "idx"))}

    @pipeline_def(batch_size=30, num_threads=2, storage_options=of(account.users["reader"]), on_error=on_error)
    def pipe():
        return fn.readers.tfrecord(**paths, features=FEATURES)["y"]

    begin = time.monotonic()
    built = pipe()
    built.build()
    account.s3.put_object(Bucket="records", Key="r/0.tfrecord", Body=(tmp_path / "r/0.tfrecord").read_bytes()[:size])
    if on_error == "raise":
        with pytest.raises(RuntimeError, match=error) as caught:
            built.run()
        assert "s3://records/r/0.tfrecord, record 0" in str(caught.value)
    else:
        assert np.ravel(built.run()[0].as_array()).tolist() == list(range(15)), "those of the other file"
        assert any(re.search(error, str(e)) for e in built.errors())
    assert time.monotonic() - begin < 60 and built.stats()["remote"]["retries"] == 0


def answers(monkeypatch, times, answer):
    """Moto's answers to the first requests for an object."""
    from moto.s3.responses import S3Response

    asked, as_ever, lock = [], S3Response.get_object, threading.Lock()

    def get_object(self):
        with lock:
            asked.append(self.path)
            n = asked.count(self.path)
        return answer() if n <= times else as_ever(self)

    monkeypatch.setattr(S3Response, "get_object", get_object)
    return asked


def slow_down():
    """Moto has no such answer of its own."""
    return 503, {}, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


def test_slow_down(account, monkeypatch):
    answers(monkeypatch, 2, slow_down)
    pipe = build(list(CONTENT), of(account.users["reader"]))
    assert contents(pipe) == list(CONTENT.values())
    counted = pipe.stats()["remote"]
    assert counted["retries"] >= 2 * len(CONTENT) and counted["failed"] == 0


def test_slow_down_for_good(account, monkeypatch):
    asked = answers(monkeypatch, 99, slow_down)
    pipe = build(["d/0"], {**of(account.users["reader"]), "retry_config": {"max_retries": 2}})
    with pytest.raises(RuntimeError, match=r"answers 503 [ \w]* \(SlowDown\) \(tried 3 times"):
        pipe.run()
    assert len(asked) >= 3 and pipe.stats()["remote"]["retries"] >= 2


def test_expired_token(account, monkeypatch):
    """Moto's tokens last for ever, so it is told to refuse them."""
    from moto.s3.exceptions import S3ClientError

    def refuse():
        raise S3ClientError("ExpiredToken", "The provided token has expired.")

    answers(monkeypatch, 99, refuse)
    pipe = build(["d/0"], of(account.users["role"]))
    with pytest.raises(RuntimeError, match=r"400 Bad Request \(ExpiredToken\); .*whether they have expired") as caught:
        pipe.run()
    assert account.users["role"]["SessionToken"] not in str(caught.value)
    assert pipe.stats()["remote"]["retries"] == 0


@pytest.mark.parametrize("fault", ["elsewhere", "signed for elsewhere"])
def test_another_region(fault):
    """Moto has no regions that refuse, so these are answers of our own server, as AWS documents them."""
    options = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "a-secret"}
    storage._connections.clear()
    with serving({"bucket/x": b"one"}) as server:
        server.fault = lambda path, number: fault
        pipe = build(["x"], {**options, "endpoint": server.url})
        with pytest.raises(RuntimeError, match=r"; check the region \(AWS_REGION, or 'region' in storage_options\)"):
            pipe.run()
        assert pipe.stats()["remote"]["retries"] == 0
