"""A second table of secrets, by another author than the rules, and its places.

Its author had read the documentation of redaction and part of the first table, but no rule.

It measures what the first table (`secret_kinds`) cannot: how the rules do on lines that they were not written for. Rows
are whole lines of commands, settings, code and protocols. They are written as in `secret_kinds`, with the secret
between `«` and `»`; ⟨signed⟩ is a password that holds signs, ⟨human⟩ one that a person thought of.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from urllib.parse import quote

from support.secret_kinds import ALPHABETS, SEED, Secret, fill

COMMANDS = {
    "curl silent user": "curl -su deploy:«⟨signed⟩» https://files.internal/a.tar",
    "curl bundled flags": "curl -sSfLu deploy:«⟨urlword⟩» -o a.tar https://files.internal/a.tar",
    "curl proxy user": "curl --proxy-user me:«⟨urlword⟩» https://example.org/",
    "curl proxy user short": "curl -x proxy.internal:3128 -U me:«⟨urlword⟩» https://example.org/",
    "curl header bearer": 'curl -sH "Authorization: Bearer «⟨b:36⟩»" https://api.internal/me',
    "curl data": """curl -d '{"login":"me","password":"«⟨signed⟩»"}' https://api.internal/login""",
    "curl form": "curl -F user=me -F password=«⟨urlword⟩» https://api.internal/login",
    "curl urlencode": "curl --data-urlencode 'password=«⟨signed⟩»' https://api.internal/login",
    "curl cookie": "curl -b 'sessionid=«⟨l:32⟩»' https://shop.internal/",
    "httpie auth": "http -a admin:«⟨urlword⟩» GET api.internal/v1/users",
    "xh auth": "xh --auth admin:«⟨urlword⟩» GET api.internal/v1/users",
    "wget http password": "wget --http-user=me --http-password='«⟨signed⟩»' https://files.internal/a",
    "sshpass variable": "SSHPASS=«⟨urlword⟩» sshpass -e ssh root@10.0.0.4",
    "ftp variable": "export FTPPASS='«⟨signed⟩»'",
    "restic variable": "RESTIC_PASSWORD=«⟨urlword⟩» restic -r /srv/backup snapshots",
    "mysql glued": "mysqldump -h db -u root -p«⟨urlword⟩» shop > shop.sql",
    "mysql long": "mysql --user=root --password='«⟨signed⟩»' shop",
    "mysqladmin": "mysqladmin -u root password '«⟨signed⟩»'",
    "psql variable": "PGPASSWORD='«⟨signed⟩»' psql -h db -U shop -c 'select 1'",
    "psql conninfo": "psql 'host=db user=shop password=«⟨urlword⟩» dbname=shop'",
    "mongo option": "mongosh --username root --password «⟨urlword⟩» --authenticationDatabase admin",
    "redis auth": "redis-cli -h cache -a «⟨urlword⟩» ping",
    "redis AUTH command": "AUTH default «⟨a:24⟩»",
    "redis config": "CONFIG SET requirepass «⟨a:24⟩»",
    "sqlcmd": "sqlcmd -S db.internal -U sa -P '«⟨signed⟩»' -Q 'select 1'",
    "sqlplus": "sqlplus shop/«⟨urlword⟩»@//db.internal:1521/ORCL",
    "cqlsh": "cqlsh db.internal -u cassandra -p «⟨urlword⟩»",
    "ldapsearch": "ldapsearch -x -D cn=admin,dc=shop -w «⟨urlword⟩» -b dc=shop",
    "smbclient": "smbclient //nas/share -U 'me%«⟨urlword⟩»' -c ls",
    "net use": "net use Z: \\\\nas\\share /user:SHOP\\me «⟨human⟩»",
    "net user": "net user deploy «⟨human⟩» /add",
    "lftp": "lftp -u me,«⟨urlword⟩» sftp://files.internal",
    "freerdp": "xfreerdp /v:10.0.0.9 /u:admin /p:«⟨urlword⟩»",
    "openssl passin": "openssl rsa -in key.pem -passin pass:«⟨urlword⟩» -out plain.pem",
    "openssl enc": "openssl enc -aes-256-cbc -k «⟨urlword⟩» -in a -out b",
    "gpg passphrase": "gpg --batch --passphrase '«⟨signed⟩»' -d secrets.gpg",
    "keytool": "keytool -list -keystore shop.jks -storepass «⟨urlword⟩»",
    "jarsigner": "jarsigner -keystore shop.jks -keypass «⟨urlword⟩» app.jar shop",
    "7z": "7z a -p«⟨urlword⟩» backup.7z data",
    "unzip": "unzip -P «⟨urlword⟩» backup.zip",
    "pdf": "qpdf --decrypt --password=«⟨urlword⟩» in.pdf out.pdf",
    "sudo from echo": "echo '«⟨signed⟩»' | sudo -S apt-get update",
    "chpasswd": "echo 'deploy:«⟨signed⟩»' | chpasswd",
    "htpasswd command": "htpasswd -bc .htpasswd me «⟨urlword⟩»",
    "docker login stdin": "echo «⟨b:40⟩» | docker login -u me --password-stdin",
    "docker run": "docker run -d -e POSTGRES_PASSWORD='«⟨signed⟩»' postgres:16",
    "kubectl literal": "kubectl create secret generic db --from-literal=password='«⟨signed⟩»'",
    "helm set": "helm upgrade shop ./chart --set auth.rootPassword=«⟨urlword⟩»",
    "heroku": "heroku config:set STRIPE_WEBHOOK_SECRET=«⟨a:32⟩» -a shop",
    "fly": "fly secrets set SESSION_SECRET=«⟨b:43⟩»",
    "aws configure": "aws configure set aws_secret_access_key «⟨s:40⟩»",
    "az login": "az login --service-principal -u app -p '«⟨a:34⟩»' --tenant shop",
    "npm config": "npm config set //registry.internal/:_authToken «⟨b:36⟩»",
    "twine": "twine upload -u __token__ -p «pypi-AgEIcHlwaS5vcmc⟨b:140⟩» dist/*",
    "git remote": "git remote set-url origin https://me:«⟨b:32⟩»@git.internal/shop.git",
    "vault write": "vault kv put secret/shop password=«⟨urlword⟩»",
    "vault token": "VAULT_TOKEN=«hvs.⟨b:90⟩» vault status",
    "ansible": "ansible-playbook site.yml -e 'ansible_become_pass=«⟨urlword⟩»'",
    "fish": "set -gx OPENWEATHER_API_KEY «⟨h:32⟩»",
    "csh": "setenv DB_PASSWORD «⟨urlword⟩»",
    "cmd": "set DB_PASSWORD=«⟨signed⟩»",
    "PowerShell variable": '$env:API_TOKEN = "«⟨a:40⟩»"',
    "PowerShell secure string": "$p = ConvertTo-SecureString '«⟨signed⟩»' -AsPlainText -Force",
    "trace": "+ export DB_PASSWORD='«⟨signed⟩»'",
    "process list": "root  4711  0.0  0.1 /usr/bin/backup --db-password «⟨urlword⟩» --full",
    "nmcli": "nmcli dev wifi connect Office password '«⟨signed⟩»'",
    "systemd": 'Environment="SMTP_PASSWORD=«⟨signed⟩»"',
    "crontab": "0 3 * * * BORG_PASSPHRASE=«⟨urlword⟩» /usr/bin/borg create /srv::a /data",
    "expect": 'expect "assword:"\nsend "«⟨human⟩»\\r"',
}

SETTINGS = {
    "dotenv signs": "DB_PASSWORD=«⟨signed⟩»",
    "dotenv signs 2": "MAIL_PASSWORD=«⟨signed⟩»",
    "dotenv human": "ADMIN_PASSWORD=«⟨human⟩»",
    "dotenv quoted": "APP_SECRET='«⟨signed⟩»'",
    "dotenv passphrase": 'SSH_PASSPHRASE="«⟨human⟩»"',
    "Laravel": "APP_KEY=base64:«⟨s:43⟩=»",
    "Rails": "secret_key_base: «⟨h:128⟩»",
    "Django": "SECRET_KEY = 'django-insecure-«⟨django⟩»'",
    "Spring": "spring.datasource.password=«⟨signed⟩»",
    "Spring YAML": "spring:\n  datasource:\n    username: shop\n    password: «⟨signed⟩»",
    "Compose list": "environment:\n  - MYSQL_ROOT_PASSWORD=«⟨signed⟩»",
    "Compose map": 'environment:\n  MYSQL_ROOT_PASSWORD: "«⟨signed⟩»"',
    "Kubernetes stringData": "kind: Secret\nstringData:\n  db-password: «⟨signed⟩»",
    "Kubernetes data": "kind: Secret\ndata:\n  password: «⟨b64password⟩»",
    "Kubernetes env": "- name: SMTP_PASSWORD\n  value: «⟨signed⟩»",
    "Kubernetes env reversed": '- value: "«⟨urlword⟩»"\n  name: SMTP_PASSWORD',
    "Terraform variable": 'variable "db_password" {\n  type    = string\n  default = "«⟨signed⟩»"\n}',
    "Terraform attribute": 'resource "aws_db_instance" "shop" {\n  master_password = "«⟨signed⟩»"\n}',
    "Terraform output": 'db_password = "«⟨signed⟩»"',
    "CloudFormation": "Parameters:\n  DbPassword:\n    Type: String\n    Default: «⟨urlword⟩»",
    "Dockerfile": 'ENV API_SECRET="«⟨a:32⟩»"',
    "Dockerfile old": "ENV API_SECRET «⟨a:32⟩»",
    "Makefile": "API_KEY ?= «⟨a:32⟩»",
    "Makefile simple": "DEPLOY_TOKEN := «⟨h:40⟩»",
    "CMake": 'set(UPLOAD_TOKEN "«⟨a:36⟩»")',
    "Gradle": "signing.password=«⟨signed⟩»",
    "Gradle store": "storePassword '«⟨signed⟩»'\nkeyAlias 'shop'",
    "Maven": "<server><id>nexus</id><username>me</username><password>«⟨signed⟩»</password></server>",
    "CDATA": "<password><![CDATA[«⟨signed⟩»]]></password>",
    "XML value": '<add key="ApiSecret" value="«⟨a:32⟩»" />',
    "XML value first": '<property value="«⟨signed⟩»" name="password"/>',
    "NuGet": '<add key="ClearTextPassword" value="«⟨signed⟩»" />',
    "Android strings": '<string name="maps_api_key">«⟨a:39⟩»</string>',
    "plist": "<key>APISecret</key>\n<string>«⟨a:32⟩»</string>",
    "appsettings": '"ConnectionStrings": {"Shop": "Server=db;User Id=sa;Password=«⟨signed⟩»;Encrypt=true"}',
    "INI": "[smtp]\nuser = me\npassword = «⟨signed⟩»",
    "INI pass": "[smtp]\nuser = me\npass = «⟨human⟩»",
    "my.cnf": "[client]\nuser=root\npassword=«⟨signed⟩»",
    "s3cfg": "access_key = AKIA⟨3:16⟩\nsecret_key = «⟨s:40⟩»",
    "rclone": "[nas]\ntype = sftp\nhost = nas\npass = «⟨b:30⟩»",
    "wpa supplicant": 'network={\n  ssid="Office"\n  psk="«⟨signed⟩»"\n}',
    "hostapd": "wpa_passphrase=«⟨signed⟩»",
    "NetworkManager": "[wifi-security]\nkey-mgmt=wpa-psk\npsk=«⟨signed⟩»",
    "Samba credentials": "username=me\npassword=«⟨signed⟩»\ndomain=SHOP",
    "ldap.conf": "binddn cn=admin,dc=shop\nbindpw «⟨urlword⟩»",
    "postfix": "[smtp.internal]:587 me@shop.internal:«⟨urlword⟩»",
    "redis.conf": "port 6379\nrequirepass «⟨a:32⟩»",
    "authinfo": "machine smtp.internal login me port 587 password «⟨urlword⟩»",
    "netrc lines": "machine git.internal\n  login me\n  password «⟨urlword⟩»",
    "pypirc": "[pypi]\nusername = __token__\npassword = «pypi-AgEIcHlwaS5vcmc⟨b:140⟩»",
    "npmrc": "//registry.internal/:_authToken=«⟨b:36⟩»",
    "npmrc password": "//registry.internal/:_password=«⟨b64password⟩»",
    "yarnrc": 'npmAuthToken: "«⟨b:36⟩»"',
    "composer": '{"http-basic": {"repo.internal": {"username": "me", "password": "«⟨signed⟩»"}}}',
    "cargo": '[registries.shop]\ntoken = "«⟨a:32⟩»"',
    "bundler": "BUNDLE_GEMS__INTERNAL: me:«⟨a:32⟩»",
    "pip": "index-url = https://me:«⟨a:24⟩»@packages.internal/simple",
    "nginx": 'proxy_set_header X-Api-Key "«⟨a:40⟩»";',
    "Nix": 'services.shop.adminPassword = "«⟨signed⟩»";',
    "TOML table": '[database]\npassword = "«⟨signed⟩»"',
    "TOML inline": 'database = { user = "shop", password = "«⟨signed⟩»" }',
    "JSON value first": '{"value":"«⟨a:32⟩»","name":"API_KEY"}',
    "JSON with type": '{"name":"API_KEY","type":"plain_text","value":"«⟨a:32⟩»"}',
    "JSON key and value": '{"Key": "DB_PASSWORD", "Value": "«⟨signed⟩»"}',
    "Postman variable": '{"key": "token", "value": "«⟨a:40⟩»", "type": "secret", "enabled": true}',
    "ECS environment": '"environment": [{"name": "DB_PASSWORD", "value": "«⟨signed⟩»"}]',
    "docker inspect": '"Env": ["PATH=/usr/bin", "POSTGRES_PASSWORD=«⟨signed⟩»"]',
    "Terraform state": '"attributes": {"password": "«⟨signed⟩»", "port": 5432}',
    "GitHub Actions": "env:\n  NPM_TOKEN: «⟨b:36⟩»",
    "Ansible variable": "ansible_ssh_pass: «⟨signed⟩»",
    "grub": "rabbitmq_default_pass: '«⟨signed⟩»'",
    "Windows registry": '"DefaultPassword"="«⟨human⟩»"',
    "Markdown table": "| user | me |\n| password | «⟨signed⟩» |",
    "Markdown code cell": "| Token | `«⟨a:40⟩»` |",
    "Markdown list": "- **Password:** `«⟨human⟩»`",
    "tab": "username\tme\npassword\t«⟨signed⟩»",
    "aligned": "Username:   me\nPassword:   «⟨signed⟩»",
}

CODE = {
    "C macro": '#define WIFI_PASSWORD "«⟨signed⟩»"',
    "C array": 'static const char password[] = "«⟨signed⟩»";',
    "C pointer": 'const char *mqtt_pass = "«⟨human⟩»";',
    "C# property": 'public string ApiKey { get; set; } = "«⟨a:40⟩»";',
    "Java constant": 'private static final String DB_PASSWORD = "«⟨signed⟩»";',
    "Java setter": 'dataSource.setPassword("«⟨signed⟩»");',
    "Java property": 'props.put("password", "«⟨signed⟩»");',
    "Kotlin": 'val clientSecret: String = "«⟨a:40⟩»"',
    "Scala": 'val dbPassword = "«⟨signed⟩»"',
    "Swift": 'static let apiSecret = "«⟨a:40⟩»"',
    "Objective-C": 'NSString *apiSecret = @"«⟨a:40⟩»";',
    "Go literal": 'cfg := Config{User: "me", Password: "«⟨signed⟩»"}',
    "Go constant": 'const jwtSecret = "«⟨a:40⟩»"',
    "Go raw string": "apiKey := `«⟨a:40⟩»`",
    "Go setenv": 'os.Setenv("STRIPE_API_KEY", "«⟨a:40⟩»")',
    "Rust constant": 'const API_TOKEN: &str = "«⟨a:40⟩»";',
    "Rust into": 'password: "«⟨signed⟩»".to_string(),',
    "Python bytes": "SECRET_KEY = b'«⟨a:32⟩»'",
    "Python unicode": "PASSWORD = u'«⟨signed⟩»'",
    "Python raw": "password = r'«⟨signed⟩»'",
    "Python keyword": 'connect(host="db", user="shop", password="«⟨signed⟩»")',
    "Python environ": 'os.environ["OPENWEATHER_KEY"] = "«⟨h:32⟩»"',
    "Python default": 'token = os.environ.get("API_TOKEN", "«⟨a:40⟩»")',
    "Python getenv": "os.getenv('DB_PASSWORD', '«⟨signed⟩»')",
    "Python tuple": 'requests.get(url, auth=("admin", "«⟨signed⟩»"))',
    "Python parameter": 'def connect(user: str, password: str = "«⟨signed⟩»"):',
    "Python dict": "{'user': 'me', 'password': '«⟨signed⟩»'}",
    "Python walrus": 'if (token := "«⟨a:40⟩»"):',
    "Python secret string": 'password=SecretStr("«⟨signed⟩»")',
    "Python field": 'api_secret: str = Field(default="«⟨a:40⟩»")',
    "JavaScript or": "const secret = process.env.JWT_SECRET || '«⟨a:40⟩»';",
    "JavaScript nullish": 'const apiKey = process.env.API_KEY ?? "«⟨a:40⟩»";',
    "JavaScript or-assign": 'process.env.API_KEY ||= "«⟨a:40⟩»";',
    "JavaScript template": "const token = `«⟨a:40⟩»`;",
    "JavaScript property": "module.exports = { jwtSecret: '«⟨signed⟩»' }",
    "JavaScript bracket": 'config["clientSecret"] = "«⟨a:40⟩»"',
    "JavaScript storage": "localStorage.setItem('access_token', '«⟨b:40⟩»')",
    "JavaScript sign": "jwt.sign({ id: 1 }, '«⟨a:40⟩»')",
    "TypeScript optional": 'password?: string = "«⟨signed⟩»"',
    "Ruby symbol": "password: '«⟨signed⟩»', host: 'db'",
    "Ruby rocket": ":password => '«⟨signed⟩»'",
    "Ruby or-assign": "ENV['API_KEY'] ||= '«⟨a:32⟩»'",
    "PHP define": "define('DB_PASSWORD', '«⟨signed⟩»');",
    "PHP array": "'password' => '«⟨signed⟩»',",
    "PHP variable": '$dbPassword = "«⟨signed⟩»";',
    "PHP env": "'secret' => env('APP_SECRET', '«⟨a:40⟩»'),",
    "Perl": "my $password = '«⟨human⟩»';",
    "Lua": 'local api_token = "«⟨a:40⟩»"',
    "Elixir": 'config :shop, secret_key_base: "«⟨s:64⟩»"',
    "Clojure": '{:user "me" :password "«⟨signed⟩»"}',
    "R": 'Sys.setenv(API_KEY = "«⟨a:40⟩»")',
    "R assign": 'api_key <- "«⟨a:40⟩»"',
    "Dart": "final String apiKey = '«⟨a:40⟩»';",
    "Visual Basic": 'Dim password As String = "«⟨signed⟩»"',
    "SQL user": "CREATE USER shop WITH ENCRYPTED PASSWORD '«⟨signed⟩»';",
    "SQL login": "CREATE LOGIN shop WITH PASSWORD = '«⟨signed⟩»';",
    "SQL alter": "ALTER USER 'root'@'%' IDENTIFIED WITH caching_sha2_password BY '«⟨signed⟩»';",
    "Arduino": 'const char* ssid = "Office";\nconst char* pass = "«⟨signed⟩»";',
}

PROTOCOLS = {
    "login form": "username=me&password=«⟨urlword⟩»&remember=1",
    "login JSON": '{"email":"me@shop.internal","password":"«⟨signed⟩»"}',
    "OAuth answer": '{"access_token":"«⟨b:60⟩»","token_type":"bearer","expires_in":3600}',
    "OAuth request": "grant_type=client_credentials&client_id=shop&client_secret=«⟨b:40⟩»",
    "OAuth code": "https://shop.internal/callback?code=abc&access_token=«⟨b:40⟩»&state=1",
    "Basic header": "> Authorization: Basic «⟨basic⟩»",
    "Token header": "Authorization: Token «⟨h:40⟩»",
    "API key header": "< X-API-Key: «⟨a:32⟩»",
    "auth token header": "X-Auth-Token: «⟨h:32⟩»",
    "GitLab header": "PRIVATE-TOKEN: «⟨b:20⟩»",
    "header object": '"headers": {"Authorization": "Bearer «⟨b:48⟩»"}',
    "header pair": '["authorization", "Bearer «⟨b:48⟩»"]',
    "HAR header": '{"name": "Authorization", "value": "Bearer «⟨b:48⟩»"}',
    "HAR cookie": '{"name": "sessionid", "value": "«⟨l:32⟩»", "path": "/", "httpOnly": true}',
    "cookie jar": '{"domain":".shop.internal","name":"session","path":"/","secure":true,"value":"«⟨b:48⟩»"}',
    "Netscape cookies": ".shop.internal\tTRUE\t/\tTRUE\t1790000000\tsessionid\t«⟨l:32⟩»",
    "Set-Cookie": "set-cookie: sid=«⟨b:40⟩»; Path=/; HttpOnly",
    "SOAP": '<wsse:Password Type="PasswordText">«⟨signed⟩»</wsse:Password>',
    "multipart": 'Content-Disposition: form-data; name="password"\n\n«⟨signed⟩»\n--x--',
    "GraphQL": '"variables": {"input": {"login": "me", "newPassword": "«⟨signed⟩»"}}',
    "Telegram address": "https://api.telegram.org/bot⟨d:10⟩:«AA⟨b:33⟩»/sendMessage",
    "Telegram variable": "TELEGRAM_BOT_TOKEN=⟨d:10⟩:«AA⟨b:33⟩»",
    "Slack webhook": "https://hooks.slack.com/services/T⟨u:8⟩/B⟨u:10⟩/«⟨a:24⟩»",
    "Discord webhook": "https://discord.com/api/webhooks/⟨d:18⟩/«⟨b:68⟩»",
    "Azure storage": "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=«⟨s:86⟩==»;EndpointSuffix=core",
    "service bus": "Endpoint=sb://shop/;SharedAccessKeyName=Root;SharedAccessKey=«⟨s:43⟩=»",
    "one-time password": "otpauth://totp/Shop:me?secret=«⟨3:32⟩»&issuer=Shop",
    "WiFi code": "WIFI:T:WPA;S:Office;P:«⟨urlword⟩»;;",
    "database address": "postgresql://shop:«⟨urlword⟩»@db.internal:5432/shop",
    "queue address": "amqp://guest:«⟨a:20⟩»@mq.internal:5672/%2f",
    "Redis address": "redis://:«⟨a:32⟩»@cache.internal:6379/0",
    "JDBC": "jdbc:mysql://db.internal/shop?user=root&password=«⟨urlword⟩»",
    "ODBC": "DRIVER={ODBC Driver 18};SERVER=db;UID=sa;PWD=«⟨urlword⟩»;",
    "FTP session": "USER deploy\nPASS «⟨human⟩»",
    "SMTP URL": "smtp://me%40shop.internal:«⟨urlword⟩»@smtp.internal:587",
    "prose": "The password for the staging box is «⟨human⟩», please change it.",
    "prose colon": "login: me@shop.internal / password: «⟨human⟩»",
    "chat": "here you go, api key: «⟨a:40⟩»",
    "GitHub token in prose": "I used ghp_«⟨a:36⟩» for the clone.",
    "Anthropic in JSON": '{"env":{"ANTHROPIC_API_KEY":"«sk-ant-api03-⟨b:93⟩AA»"}}',
    "bare AWS pair": "aws_access_key_id=AKIA⟨3:16⟩ aws_secret_access_key=«⟨s:40⟩»",
    "generated": "Generated root password: «⟨signed⟩»",
    "temporary": "A temporary password is generated for root@localhost: «⟨signed⟩»",
}

TABLES = {"commands": COMMANDS, "settings": SETTINGS, "code": CODE, "protocols": PROTOCOLS}

SIGNS = "!.-_@#%"


def signed(dice: random.Random) -> str:
    """A generated password of 12 to 18 letters and digits that holds one or two of the signs."""
    made = [*dice.choices(ALPHABETS["c"], k=dice.randint(9, 14)), *dice.choices("0123456789", k=2)]
    dice.shuffle(made)
    for _ in range(dice.randint(1, 2)):
        made.insert(dice.randint(1, len(made) - 1), dice.choice(SIGNS))
    return "".join(made)


def human(dice: random.Random) -> str:
    """A password that a person thinks of: a word, a year, a sign."""
    word = dice.choice(("Sommer", "Dragon", "Liverpool", "blueberry", "Kathmandu", "monkey", "Passw0rd", "qwertz"))
    tail = dice.choice(("!", "#1", "-", ".x", "@home", "_", "!!"))
    return f"{word}{dice.randint(1950, 2026)}{tail}" if dice.random() < 0.7 else f"{word}-{dice.randint(10, 999)}-Till"


def held_out_secrets(seed: int = SEED) -> Iterator[Secret]:
    """A secret of every kind, each of a seed of its own."""
    for name, table in TABLES.items():
        for kind, row in table.items():
            dice = random.Random(f"{seed} held out {name} {kind}")
            row = row.replace("⟨signed⟩", signed(dice)).replace("⟨human⟩", human(dice))
            before, _, rest = fill(row, dice).partition("«")
            secret, _, after = rest.partition("»")
            yield Secret(f"{name}: {kind}", "snippet", before + secret + after, secret)


def _each_line(text: str, make: Callable[[str], str]) -> str:
    return "\n".join(make(line) for line in text.split("\n")) + "\n"


def _tool_output(text: str) -> str:
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 11))
    return json.dumps({"type": "tool_result", "content": [{"type": "text", "text": numbered}]})


HELD_OUT_PLACES: dict[str, tuple[str, Callable[[str], str]]] = {
    "plain": ("txt", lambda text: f"first line\n{text}\nlast line\n"),
    "JSON": ("json", lambda text: json.dumps({"role": "user", "content": f"Look:\n{text}\n\nWhy?"})),
    "JSON in JSON": ("json", lambda text: json.dumps({"output": json.dumps({"output": text, "exit_code": 0})})),
    "numbered tool output": ("json", _tool_output),
    "diff, added": ("diff", lambda text: "@@ -1 +1 @@\n-old\n" + _each_line(text, lambda line: f"+{line}")),
    "diff, removed": ("diff", lambda text: "@@ -1 +1 @@\n" + _each_line(text, lambda line: f"-{line}") + "+new\n"),
    "YAML block": ("yaml", lambda text: "run: |\n" + _each_line(text, lambda line: f"    {line}")),
    "quote": ("md", lambda text: "He wrote:\n\n" + _each_line(text, lambda line: f"> {line}")),
    "here document": ("sh", lambda text: f"cat > conf <<'END'\n{text}\nEND\n"),
    "Python repr": ("log", lambda text: f"stdout={text + chr(10)!r}, returncode=0\n"),
    "coloured": ("log", lambda text: _each_line(text, lambda line: f"\x1b[32m{line}\x1b[0m")),
    "search result": ("log", lambda text: _each_line(text, lambda line: f"conf/a.txt:12:{line}")),
    "URL-encoded": ("txt", lambda text: f"GET /log?line={quote(text, safe='')}&n=1 HTTP/1.1\n"),
}
"""Place -> ending of a file of it, and the text in it."""
