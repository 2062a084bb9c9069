"""Single lines of logs: secrets that a third author's lines hold, and code of published programs that holds none."""

import json

import pytest

from turnlog.redact import mask_text

KEY = "Fh2EhZZZGNzlzBabIDYbsq1PGMOIyWMhFc7vJQuj"
HEX = "7d4eccfdbcf77790ee10ebcab40b134b"
WORD = "Otter!9572Q"

WITH_SECRETS = [
    ("pass_phrase=@", WORD),
    ("aws ssm put-parameter --name /prod/db --type SecureString --value '@'", WORD),
    ("security unlock-keychain -p '@' login.keychain", WORD),
    ("ssh-keygen -t ed25519 -N '@' -f k", WORD),
    ("mosquitto_pub -h b -u dev -P @ -t x -m y", WORD),
    ("x11vnc -passwd @ -display :0", WORD),
    ("wandb login @", HEX),
    ("ngrok config add-authtoken @", KEY),
    ("git config --global github.token @", HEX),
    ("use token @ to log in", KEY),
    ("Cookie: _ga=GA1.2.1; sessionid=@", "qwg3zthlhp1vpujhnovqbxbpz73gxzvc"),
    ("Authorization: SSWS @", KEY),
    ("-H 'DD-APPLICATION-KEY: @'", HEX),
    ("server.login('bob@corp.test', '@')", WORD),
    ("cy.get('input[name=password]').type('@')", WORD),
    ("find_element(By.NAME, 'password').send_keys('@')", WORD),
    ("p.add_argument('--token', default='@')", KEY),
    ("AES_KEY = bytes.fromhex('@')", HEX * 2),
    ("f = Fernet(b'@')", "cAvc68e8bCafpLBlDThA8zX32GbgZAnfZmLqI3vAOwI="),
    ("hmac.new(b'@', body, 'sha256')", KEY),
    ("echo @ | kinit bob", WORD),
    ("echo @ | wrangler secret put API_KEY", KEY),
    ("PrivateKey = @", "BMIvphHx/JDt3p8GwUsOabuDFQPh1oOhRPn71OmIMQk="),
    ('curl -u "client:@" https://api.test/token', KEY),
    ("redis-cli -h cache AUTH @", WORD),
    ("mysqladmin -u root password '@'", WORD),
    ("echo @ | passwd --stdin bob", WORD),
    ("sudo -S apt update <<< '@'", WORD),
    ("kinit bob <<< @", WORD),
    ("rabbitmqctl add_user bob @", WORD),
    ("rabbitmqctl change_password bob '@'", WORD),
    ("mc alias set store http://store:9000 admin @", KEY),
    ("wpa_passphrase HomeNet @", WORD),
    ("nmcli dev wifi connect HomeNet password @", WORD),
    ("bw login ann@corp.test '@'", WORD),
    ("bw unlock @", WORD),
    ("snmpwalk -v3 -u ann -A @ -x AES host", WORD),
    ("snmpget -v2c -c @ host sysName.0", WORD),
    ("sudo useradd -m -p @ bob", WORD),
    ("smbclient //files/share @ -U bob", WORD),
    ("rclone obscure @", WORD),
    ("ansible-vault encrypt_string '@' --name db", WORD),
    ("influx -username ann -password @", WORD),
    ("evil-winrm -i host -u bob -p @", WORD),
    ("name,email,password\nann,ann.at.corp.test,@\n", WORD),
    ("name;password\r\nann;@\r\n", WORD),
    ("user\ttoken\nann\t@", KEY),
    ('id,"api_key","note"\n1,"@","a, b"\n', HEX),
    ("| user | secret |\n|---|---|\n| ann | @ |\n", KEY),
    ("     1\tname,api key\n     2\tann,@\n", HEX),
]

WITHOUT = [
    "Set-Cookie: PART_NUMBER=ROCKET_LAUNCHER_0001; path=/",
    "RegEnumKey = win32api.RegEnumKey",
    "ENCODED_AUTH = base64.b64encode(USER_PASSWD.encode('ascii'))",
    "('http', 'user/name', 'password', 'localhost:22')",
    "('User:Pass', 'www.python.org:080')",
    "the token identifies-the-session-of-a-user",
    "git login required-for-this-operation",
    "sorted(rows, key=lambda row: row.created_at)",
    "https://docs.test/table?key=name-of-the-first-column",
]


@pytest.mark.parametrize(("line", "secret"), WITH_SECRETS, ids=[line[:40] for line, _ in WITH_SECRETS])
def test_a_secret_in_a_line_is_gone(line: str, secret: str) -> None:
    text = line.replace("@", secret) if line.count("@") == 1 else line.replace("'@'", f"'{secret}'")
    assert secret not in mask_text(text)
    assert secret not in mask_text(json.dumps({"content": text}))


@pytest.mark.parametrize("line", WITHOUT)
def test_a_line_without_a_secret_stays(line: str) -> None:
    assert mask_text(line) == line
