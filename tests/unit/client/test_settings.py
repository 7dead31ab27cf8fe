from __future__ import annotations

import pytest

from binlane.client.settings import ServerUrl, SslMode
from binlane.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("mariadb://binlane@10.0.0.1:3307", ServerUrl(user="binlane", host="10.0.0.1", port=3307)),
        ("mysql://u@db/", ServerUrl(user="u", host="db", scheme="mysql")),
        ("mariadb://a%40b@[::1]:1", ServerUrl(user="a@b", host="::1", port=1)),
        (
            "mariadb://u@localhost?socket=/run/my%20+sql.sock",
            ServerUrl(user="u", host="localhost", socket="/run/my +sql.sock"),
        ),
        (
            "mariadb://u@db?ssl-mode=verify_ca&ssl-ca=/ca.pem&ssl-cert=/c.pem&ssl-key=/k.pem",
            ServerUrl(
                user="u",
                host="db",
                ssl_mode=SslMode.VERIFY_CA,
                ssl_ca="/ca.pem",
                ssl_cert="/c.pem",
                ssl_key="/k.pem",
            ),
        ),
    ],
)
def test_urls(text: str, url: ServerUrl) -> None:
    assert ServerUrl.parse(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("127.0.0.1:3306", "names no server"),
        ("postgres://u@h", "names no server"),
        ("mariadb://127.0.0.1", "names no user"),
        ("mariadb://u@h:port", "is no URL"),
        ("mariadb://u@h/shop", "names a database"),
        ("mariadb://u@h?ssl-mode=MAYBE", "ssl-mode 'MAYBE' is unknown"),
        ("mariadb://u@h?ssl-mod=REQUIRED", "option 'ssl-mod' is unknown"),
    ],
)
def test_what_is_no_url(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ServerUrl.parse(text)
    assert caught.value.key == "source.url"
    assert caught.value.hint


def test_an_unknown_option_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerUrl.parse("mariadb://u@h?sokcet=/x")
    assert caught.value.hint == "did you mean socket?"


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerUrl.parse("mariadb://u:geheim@h")
    assert "geheim" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "text", ["mariadb://u@10.0.0.1:3307", "mysql://u@[::1]:1", "mariadb://u@h?socket=/s"]
)
def test_messages_name_a_server_as_its_url(text: str) -> None:
    assert str(ServerUrl.parse(text)) == text
