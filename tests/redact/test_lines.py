"""Single lines of logs: secrets that a third author's lines hold, and code of published programs that holds none."""

import json

import pytest

from turnlog.redact import mask_text

KEY = "Fh2EhZZZGNzlzBabIDYbsq1PGMOIyWMhFc7vJQuj"
HEX = "7d4eccfdbcf77790ee10ebcab40b134b"
WORD = "Otter!9572Q"

LETTERS = "TBkCfvAGfyUPzE"
FLOWER = "Sonnenblume"

WITH_SECRETS = [
    ("DB_PASS=@", LETTERS),
    ("PGPASSWORD=@ psql", LETTERS),
    ("export TOKEN=\\\n@\n", KEY),
    ("export TOKEN=\\\r\n@\r\n", KEY),
    ("cd shop\ndocker run \\\n  -e TOKEN=\\\n@ \\\n  shop", KEY),
    ("deploy --token \\\n    @ shop", KEY),
    ("curl -u \\\n  bob:@ https://shop.test", KEY),
    ('curl -H "Authorization: Bearer \\\n@"', KEY),
    ("printf '\\033[1m'; deploy --token \\\n    @ shop", KEY),
    ('{"body": "{\\"password\\": \\"@\\"}"}', LETTERS),
    ("- name: DB_PASSWORD\n  value: @", LETTERS),
    ("Authorization: Bearer @", "SZbUvoKIwCyefiEz"),
    ("ansible_become_pass: @", "kqzvwhxmpltr"),
    ("DB_PASSWORD=@", FLOWER),
    ("password='@'", "correct-horse-battery"),
    ('{"password": "@"}', "CorrectHorseBattery"),
    ("<password>@</password>", FLOWER),
    ("setx DB_PASSWORD @", FLOWER),
    ("define('DB_PASSWORD', '@');", FLOWER),
    ("mysqlsh --password=@ shop", FLOWER),
    ("db.internal:5432:shop:app:@", FLOWER),
    ("secret_key: >-\n  @\n", KEY),
    ('client = Client(\n    api_key=\n        "@",\n)', KEY),
    ('password = "@"', "OYm9bIg6GR correct gzuanHtdAi"),
    ("wif key: @", "5H5kEbTSt37aa9QVzgQDa7GJwijSuHeK5aYFekMUWbYNDsnQtxm"),
    ("data: @", "eyJjbGllbnRfc2VjcmV0IjogImdjQ0pWcUlxWUtobk9VelQifQ=="),
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
    # Positional passwords, what a command stores, and what it prints.
    ("net use \\\\files\\share @ /user:bob", WORD),
    ("rar a -hp@ a.rar d", WORD),
    ("net rpc join -U admin%@", WORD),
    ("sqlplus bob/@", WORD),
    ("oc login -u bob -p @ https://api.test", WORD),
    ("skopeo copy --src-creds bob:@ a b", WORD),
    ("vault kv put secret/db pw=@", WORD),
    ("heroku config:set DB=@", KEY),
    ("kubectl create secret generic db --from-literal=value=@", WORD),
    ("aws secretsmanager create-secret --name db --secret-string '@'", WORD),
    ("gh secret set NAME --body '@'", KEY),
    ("poetry config pypi-token.pypi @", KEY),
    ("security add-generic-password -a bob -s db -w @", WORD),
    ("echo @ | pass insert -e db", WORD),
    ("echo '@' | cryptsetup luksOpen /dev/sdb d", WORD),
    ("nmcli con mod x wifi-sec.psk @", WORD),
    ("wg set wg0 private-key <(echo @)", "q3Jt0xk9VbW7yZpLr2MnA5sD8fGhJ1kE4uIoP6aXcTQ="),
    ("neo4j-admin dbms set-initial-password @", WORD),
    ("drush user:password bob '@'", WORD),
    ("127.0.0.1:6379> AUTH @", WORD),
    ("expect -c 'send \"@\\r\"'", WORD),
    ("c.connect('host', 22, 'bob', '@')", WORD),
    ('DriverManager.getConnection(url, "bob", "@")', WORD),
    ("new PDO($dsn, 'bob', '@')", WORD),
    ("bcrypt.hashpw(b'@', salt)", WORD),
    ("jwt.encode(claims, '@', algorithm='HS256')", KEY),
    ("new Octokit({auth: '@'})", KEY),
    ("$ cat config/master.key\n@\n", HEX),
    ("cat /run/secrets/db_password\n@\n", WORD),
    ("$ gh auth token\n@", KEY),
    ("$ echo $API_KEY\n@", KEY),
    ("$ openssl rand -hex 32\n@\n", HEX),
    ("$ kubectl get secret db -o jsonpath='{.data.password}' | base64 -d\n@", WORD),
    ("$ vault kv get -field=password secret/db\n@", WORD),
    ("'user','password'\n'bob','@'", WORD),
    (" id | user | api_token \n----+------+----\n 1 | bob | @\n", KEY),
    ("+----+----------+\n| id | password |\n+----+----------+\n| 1  | @ |\n+----+----------+", WORD),
]

WITHOUT = [
    "the auth token\nvalue-of-step-2",
    "$ cat tokens.yaml\nversion-2.1",
    "$ echo $TOKENS\n12345678",
    "signal.connect(sender, receiver, 'dispatch-uid-1')",
    "internet user agent Mozilla/5.0",
    "tokenizer:\n  type: string\n  default: cl100k_base",
    "heroku config:set NODE_ENV=production",
    "'with static credentials, pass '\n'`profile=Profile(supports_websocket=True)`",
    "client -> auth server-2",
    "{auth: 'oauth2-client'}",
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


def test_a_password_with_an_at_sign_is_gone_from_an_address() -> None:
    assert (
        mask_text("postgres://app:p@B0aeLj3xiX@db:5432/prod")
        == "postgres://app:[REDACTED:connection-string]@db:5432/prod"
    )
    assert (
        mask_text("amqp://a:p@B0aeLj3xiX@db and me@shop.test")
        == "amqp://a:[REDACTED:connection-string]@db and me@shop.test"
    )


@pytest.mark.parametrize("line", WITHOUT)
def test_a_line_without_a_secret_stays(line: str) -> None:
    assert mask_text(line) == line
