"""Secrets that are recognised by what is around them: blocks, the text before them, options of commands."""

from __future__ import annotations

from turnlog.redact.placeholders import (
    is_app_password,
    is_basic,
    is_cookie,
    is_given,
    is_key,
    is_key_body,
    is_password,
    is_password_or_word,
    is_random,
    is_url_token,
)
from turnlog.redact.rule import WORD, Rule, Shape, after, option

_QUOTE = r"""\\{0,3}["'`]"""

_IS = rf"""(?:{_QUOTE})?\]?\s{{0,4}}(?::=|=>|=(?!=)|:|,(?=\s?\\{{0,3}}["']))\s{{0,4}}\[?(?:{_QUOTE})?"""
"""Between a name and its value: `key: "…"`, `key=…`, `\\"key\\": \\"…\\"`, `"key", "…"`."""

_NOT_BLANK = r"[^\s\\]{1,128}"

_SPACE = r"""(?:\s{1,4}|=|\\{0,3}["'],\s{0,4}\\{0,3}["']?)"""
"""Between an option and its value, in a shell and in a list of arguments."""

_GAP = r"(?:\s|\\{1,3}[nrt]|[+>-](?=\s)|[\w./-]{1,60}:\d{1,6}:|\d{1,6}→){1,20}"
"""Between two words, maybe on different lines, also in escaped JSON, in a diff and behind the numbers of lines."""

_VALUE = r"""(?P<secret>(?<=["'`])[^\s"'`\\\x1b]{8,512}(?=\\{0,3}["'`])|[^\s"'`,;&|<>\\\x1b]{8,512})"""
"""A value: up to the quote that ends it, or up to where a language would end it."""

HEADERS = r"authorization|x-(?:goog-)?api-key|api-key|x-auth-token|x-access-token|private-token"
"""Headers that sign a request."""

BLOCKS = (
    Rule(
        "private-key",
        ("PRIVATE KEY-----", "PRIVATE KEY BLOCK"),
        Shape(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?P<secret>(?:[^-]|-(?!----)){0,50000}(?=-----END )|[A-Za-z0-9+/=\s\\→:|]{0,50000})"
        ),
        is_key_body,
    ),
    Rule(
        "private-key-block",
        ("Private-Lines:", "OpenVPN Static key", "SSH2 ENCRYPTED PRIVATE KEY"),
        Shape(
            r"(?:Private-Lines: \d{1,4}|BEGIN OpenVPN Static key V1-----|BEGIN SSH2 ENCRYPTED PRIVATE KEY ----)"
            r"(?:\s|\\{1,3}[nrt]){1,8}(?P<secret>\+?[A-Za-z0-9+/=]{16,100}"
            r"(?:(?:\s|\\{1,3}[nrt]){1,8}\+?[A-Za-z0-9+/=]{1,100}(?![\w-])){0,1000})"
        ),
        is_key_body,
    ),
    Rule(
        "password-hash",
        ("$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$7$", "$apr1$", "$argon2", "$scrypt$", "{SHA}", "{SSHA}"),
        Shape(
            r"\$(?:[156]|apr1)\$(?:rounds=\d{1,9}\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{22,86}"
            r"|\$2[aby]\$\d\d\$[A-Za-z0-9./]{53}"
            r"|\$(?:y|7|gy)\$[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{1,86}\$[A-Za-z0-9./]{43}"
            r"|\$(?:argon2i?d?|scrypt)\$[\w=,$-]{4,64}\$[A-Za-z0-9+/]{8,128}\$[A-Za-z0-9+/]{20,128}"
            r"|\{S?SHA\}(?P<secret>[A-Za-z0-9+/]{27,60}={0,2})"
        ),
    ),
)
"""Secrets of several lines, and hashes that hold them."""

PLACES = (
    after(
        "url-token",
        "://",
        r"""://(?P<secret>[^\s:@/?#"'`\\<>]{20,256})(?::(?:x-oauth-basic|x-oauth-token|api_token|x)?)?@(?=[\w\[$])""",
        is_url_token,
    ),
    # A password may have an at sign; the last one is before the host.
    after(
        "connection-string",
        "://",
        r"""://[^\s:@/?#"'`\\<>\[]{0,128}:(?P<secret>[^\s@/"'`\\<>]{1,128}(?:@[^\s@/:?&,;"'`\\<>]{1,128}){1,3})@(?=[\w\[$])""",
        is_given,
    ),
    after(
        "connection-string",
        "://",
        r"""://[^\s:@/?#"'`\\<>\[]{0,128}:(?P<secret>[^\s@/"'`\\<>]{1,256})@(?=[\w\[$])""",
        is_given,
    ),
    after(
        "basic-credentials",
        "basic ",
        rf"basic(?<![\w-]basic)\s{{1,4}}(?:{_QUOTE})?(?P<secret>[a-z0-9+/]{{8,400}}={{0,2}})",
        is_basic,
    ),
    after(
        "authorization-header",
        "authorization|api-key|x-auth-token|x-access-token|private-token",
        rf"(?<![a-z0-9_])(?:{HEADERS}){_IS}\s{{0,4}}(?:[a-z][\w-]{{1,20}}\s{{1,4}})?(?:(?:token|key)=)?{_VALUE}",
        is_random,
    ),
    after("bearer-token", "bearer ", r"bearer(?<!\wbearer)\s{1,4}(?P<secret>[a-z0-9._~+/=-]{16,4096})", is_random),
    after(
        "cookie",
        "cookie",
        rf"cookie(?<!\wcookie){_IS}"
        r"(?P<secret>[\w.-]{1,64}=[^\s;:\"'\\]{1,1024}(?:;[^\S\n]{0,2}[\w.-]{1,64}=[^\s;:\"'\\]{1,1024}){0,20})",
        is_cookie,
    ),
    after(
        "aws-secret-key",
        "aws_secret|awssecret|secretaccesskey",
        rf"(?:aws_?secret_?(?:access)?_?key|secretaccesskey)(?:{_IS}|\s{{1,4}})(?P<secret>[a-z0-9/+]{{40}})(?![a-z0-9/+])",
    ),
    after(
        "azure-key",
        "accountkey|sharedaccesskey|shared_access_key",
        rf"(?:account|sharedaccess|shared_access_)key{_IS}(?P<secret>[a-z0-9+/]{{42,86}}={{1,2}})",
    ),
    after(
        "signed-url",
        "sig=|x-amz-",
        r"[?&](?:sig|x-amz-signature|x-amz-security-token)=(?P<secret>[a-z0-9%+/=_-]{32,2048})",
    ),
    after("teams-webhook", "webhook.office.com/", r"webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{60,300})"),
    after("zapier-webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/(?P<secret>[\w/-]{7,99}\w)"),
    after(
        "sudo-password", "sudo -", rf"echo\s{{1,4}}{WORD}[\"']?\s{{0,4}}\|\s{{0,4}}sudo\s{{1,4}}-\w{{0,4}}s", is_given
    ),
    after(
        "vault-login",
        "vault login",
        r"vault login\s{1,4}(?:-[\w=-]{1,40}\s{1,4}){0,5}(?P<secret>[\w.-]{20,200})",
        is_random,
    ),
    after(
        "secure-string",
        "convertto-securestring",
        rf"convertto-securestring\s{{1,4}}(?:-string\s{{1,4}})?{_QUOTE}(?P<secret>[^\s\"'`\\]{{4,256}})",
        is_given,
    ),
    after(
        "keystore-password",
        "storepass|keypass",
        rf"(?:storepass|keypass){_SPACE}{WORD}",
        is_given,
    ),
    after("openssl-password", "pass:", rf"pass:(?<=[\s\"']pass:){WORD}", is_given, near="openssl"),
    after(
        "netrc-password",
        "machine",
        rf"machine(?<!\wmachine){_GAP}[^\s\\]{{1,253}}(?:{_GAP}(?:login|port|account){_GAP}[^\s\\]{{1,128}}){{1,3}}"
        rf"{_GAP}password{_GAP}"
        r"(?P<secret>[^\s\"'\\]{1,256})",
        is_given,
    ),
    after(
        "pgpass-line",
        ":5432:|:5433:|:6432:|:*:",
        r""":(?<=[\w*]:)(?:5432|5433|6432|\*):[\w.*-]{1,63}:[\w.*@-]{1,63}:(?P<secret>[^\s:"'`\\]{4,256})""",
        is_password_or_word,
    ),
    after(
        "npmrc-password",
        "_auth|_password",
        rf"_(?:auth|authtoken|(?<![a-z0-9]_)password)\s{{0,2}}=\s{{0,2}}{_VALUE}",
        is_password,
    ),
    after(
        "docker-auth",
        'auth"|auth\\',
        rf"[\"']auth{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?P<secret>[a-z0-9+/]{{8,400}}={{0,2}})",
        is_basic,
    ),
    after("bundler-credentials", "contribsys", rf"contribsys_{{1,2}}com{_IS}(?P<secret>[a-f0-9]{{8}}:[a-f0-9]{{8}})"),
    after(
        "bundler-credentials",
        "bundle_",
        rf"bundle_\w{{3,60}}{_IS}[^\s:\"'/]{{1,60}}:(?P<secret>[^\s\"'\\/]{{8,200}})",
        is_password,
    ),
    after(
        "command-line-user",
        "curl",
        r"curl(?<![\w.]curl)(?:[^\n]|\\\n){0,300}?[\s\"'`]-(?:[a-z#]{0,10}u|-(?:proxy-)?user)"
        rf"(?:{_SPACE})?(?:{_QUOTE})?[^\s:,\"'\\/]{{1,128}}:(?:{_QUOTE})?(?P<secret>[^\s\"'\\\x1b]{{3,256}})",
        is_given,
    ),
    after("telegram-bot-token", "/bot", r"/bot\d{6,12}:(?P<secret>[\w-]{30,50})(?![\w-])"),
    after(
        "directive-password",
        "requirepass |masterauth |bindpw |_authtoken |auth default ",
        rf"(?:requirepass|masterauth|bindpw|_authtoken|auth default)[ \t]{{1,8}}{WORD}",
        is_password,
    ),
    after(
        "login-password", "sqlplus", r"sqlplus\s{1,4}(?:-\w\s{1,4}){0,3}\w{1,40}/(?P<secret>[^\s@]{3,128})@", is_given
    ),
    after(
        "login-password",
        "net use",
        r"net user?\s{1,4}(?:[^\n]{1,100}/user:\S{1,80}|[\w.-]{1,40})\s{1,4}(?P<secret>[^\s/\\\"'*][^\s\"'\\]{3,128})",
        is_password,
    ),
    after(
        "login-password", "freerdp|mstsc|rdesktop", rf"(?:freerdp|mstsc|rdesktop)[^\n]{{0,300}}?\s/p:{WORD}", is_given
    ),
    after(
        "login-password",
        "chpasswd",
        r"echo\s{1,4}(?:-\w\s{1,4})?[\"']?[\w.-]{1,40}:(?P<secret>[^\s\"'\\]{3,256})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd",
        is_given,
    ),
    after(
        "login-password",
        "htpasswd",
        rf"htpasswd\s{{1,4}}-[a-z0-9]{{0,6}}b[a-z0-9]{{0,6}}\s{{1,4}}(?:\S{{1,200}}\s{{1,4}}){{1,2}}{WORD}(?=[\"']?(?:\s*$|\n|\\|[\"']))",
        is_password,
    ),
    after(
        "login-password",
        "password-stdin|--with-token",
        rf"(?:echo|printf)\s{{1,4}}(?:-n\s{{1,4}})?{WORD}[\"']?\s{{0,4}}\|[^\n|]{{0,200}}(?:--password-stdin|--with-token)",
        is_given,
    ),
    after(
        "named-secret",
        "value\"|value'|value\\|value: |value=",
        rf"value(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTE})(?P<secret>[^\s\"'`\\\x1b]{{8,512}})(?:{_QUOTE})"
        rf"(?:[,\s]{{1,8}}(?:{_QUOTE})\w{{1,20}}(?:{_QUOTE})\s{{0,4}}:\s{{0,4}}"
        rf"(?:{_QUOTE})?[\w .-]{{1,40}}(?:{_QUOTE})?){{0,3}}"
        rf"(?:\s|\\{{1,3}}[nrt]|[,+>-]|\d{{1,6}}[→:]){{1,40}}(?:{_QUOTE})?(?:name|key)(?:{_QUOTE})?\s{{0,4}}"
        rf"[:=]\s{{0,4}}(?:{_QUOTE})?"
        r"[\w.-]{0,60}?(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|[_-]key|apikey)(?![\w.-])",
        is_password,
    ),
    after(
        "cookie",
        'value"|value\\',
        rf"name{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?:[\w.-]{{0,20}}(?:session|sess)(?:_?id)?|[\w.-]{{0,20}}sid"
        rf"|csrf\w{{0,10}}|auth){_QUOTE}"
        rf"(?:\s{{0,4}},\s{{0,20}}{_QUOTE}\w{{1,20}}{_QUOTE}\s{{0,4}}:\s{{0,4}}"
        rf"(?:{_QUOTE})?[\w /.-]{{1,60}}(?:{_QUOTE})?){{0,8}}"
        rf"\s{{0,4}},\s{{0,20}}{_QUOTE}value{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?P<secret>[^\s\"'\\]{{16,1024}})",
        is_key,
    ),
    after(
        "cookie",
        "\ttrue|\tfalse|\\ttrue|\\tfalse",
        r"(?:true|false)(?:\t|\\{1,3}t)/[^\s\\]{0,80}(?:\t|\\{1,3}t)(?:true|false)(?:\t|\\{1,3}t)\d{1,12}(?:\t|\\{1,3}t)"
        r"[\w.-]{1,60}(?:\t|\\{1,3}t)(?P<secret>[^\s\"'\\]{16,1024})",
        is_random,
    ),
    after(
        "password",
        "form-data",
        rf"form-data;\s{{0,4}}name={_QUOTE}[\w-]{{0,40}}(?:password|passwd|secret|token|api_?key){_QUOTE}{_GAP}"
        r"(?P<secret>[^\s\"'\\]{6,512})",
        is_password,
    ),
    after("wifi-password", "wifi:", r"wifi:[^\n\"']{0,100}?;?p:(?P<secret>[^\s;\"'\\]{6,63});", is_given),
    after(
        "password",
        "password",
        r"password (?:(?:for|of|to) [^\n:\"']{1,60} )?is:? [`\"']?(?P<secret>[^\s`\"',\\]{6,64}[^\s`\"',.\\])",
        is_password,
    ),
    after("password", "is generated for", r"password is generated for \S{1,80}: (?P<secret>\S{6,64})", is_password),
    after(
        "named-secret",
        "api key|access key|secret key|access token",
        rf"(?:api|access|secret) (?:key|token)(?: provided)?\s?(?::|=|\bis:?\b)\s?[`\"']?{_VALUE}",
        is_random,
    ),
    after(
        "element-password",
        "password",
        r"<(?:[\w-]{1,30}:)?\w{0,20}password\s[^<>]{1,200}>(?P<secret>[^\s<>]{4,256})</",
        is_password,
    ),
    after(
        "basic-credentials",
        "auth=(|auth = (|auth(|login(",
        rf"(?:auth(?:=|\s=\s)?|\.login)\(\s?{_QUOTE}[^\s\"'\\]{{1,100}}{_QUOTE},\s?{_QUOTE}(?P<secret>[^\s\"'\\]{{4,256}}){_QUOTE}",
        is_given,
    ),
    after(
        "signing-secret",
        "fernet(|hmac.new(|createhmac(",
        rf"(?:fernet\(|hmac\.new\(|createhmac\(\s?{_QUOTE}\w{{1,20}}{_QUOTE},)\s?b?{_QUOTE}(?P<secret>[^\s\"'`\\]{{10,512}}){_QUOTE}",
        is_random,
    ),
    after(
        "typed-password",
        "fill(|type(|keys(|sequentially(",
        rf"(?:password|passwd)[^\n]{{0,60}}?\)\s{{0,40}}\.(?:fill|type|send_?keys|press_?sequentially)\(\s?{_QUOTE}(?P<secret>[^\s\"'`\\]{{4,256}}){_QUOTE}",
        is_password,
    ),
    after(
        "wordpress-key",
        "_key'|_salt'",
        r"define\(\s{0,4}'\w{3,20}_(?:key|salt)',\s{0,20}'(?P<secret>[^'\n\\]{40,80})'",
        is_random,
    ),
    after(
        "app-password",
        "pass",
        rf"pass(?:word|wd)?{_IS}(?P<secret>[a-z]{{4}}(?:[ -][a-z]{{4}}){{3}})(?=\\{{0,3}}[\"'`\n]|\\n|\Z)",
        is_app_password,
    ),
    after("url-key", "key=", r"[?&]key=(?P<secret>[\w-]{24,256})", is_key),
    after(
        "one-time-link",
        "reset|verify-email|magic-link|invite/|activate/",
        r"(?:reset[-_]password|password[-_]reset|/reset|verify-email|magic-link|invite|activate)/(?P<secret>[\w.-]{24,512})",
        is_key,
    ),
    after(
        "named-secret",
        '_sk=|_sk:|_sk"|_sk\\|_sk =',
        rf"(?<![\w.])\w{{1,40}}_sk{_IS}(?P<secret>[\w+/=.-]{{16,256}})(?![#:@!$%*^])",
        is_key,
    ),
    after(
        "password",
        '_pw=|_pw:|_pw"|_pw\\|_pw =',
        rf"(?<![\w.])\w{{1,40}}_pw{_IS}(?P<secret>[^\s\"'`,;&|<>\\\x1b]{{6,256}})",
        is_password,
    ),
    after(
        "password",
        "kennwort|contraseña|mot de passe",
        rf"(?:kennwort|contraseña|mot de passe){_IS}{_VALUE}",
        is_password,
    ),
    after(
        "wallet-key",
        "wif key|wif:|wif=|wif\"|wif'|_wif",
        rf"wif(?:[ _-]key)?{_IS}(?P<secret>[5kl][1-9a-z]{{50,51}})(?![a-z0-9])",
        is_key,
    ),
    after("saml-assertion", "samlresponse", rf"samlresponse{_IS}(?P<secret>[a-z0-9+/%=]{{64,20000}})", is_random),
    after("unseal-key", "seal key", r"unseal key \d{1,2}: (?P<secret>[a-z0-9+/]{40,90}={0,2})", is_random),
    # wandb login KEY, ngrok config add-authtoken KEY, git config github.token KEY, and prose
    after("named-secret", "token |login ", r"(?:token|[a-z] login)[ \t]{1,4}(?P<secret>[\w.~+/-]{20,512})", is_key),
    after(
        "piped-secret",
        "secret|credential|kinit",
        rf"echo\s{{1,4}}(?:-n\s{{1,4}})?{WORD}(?:{_QUOTE})?\s{{0,4}}\|\s{{0,4}}(?:[^\n|]{{0,100}}\s)?"
        r"(?:kinit|\w{0,40}secrets?|credentials?)(?![\w.])",
        is_password,
    ),
    after("mail-password", "]:", r"\]:\d{1,5}\s{1,8}[^\s:\"']{1,128}:(?P<secret>[^\s\"'\\]{4,256})", is_password),
    after("ftp-password", "pass ", rf"user {_NOT_BLANK}{_GAP}pass (?P<secret>[^\s\"'\\]{{4,256}})", is_password),
    after(
        "sql-password",
        "identified |password '|password \\",
        r"(?:identified\s{1,4}(?:with\s{1,4}\w{1,40}\s{1,4})?by\s{1,4}(?:password\s{1,4})?"
        r"|(?:role|user|login|encrypted|with)\s{1,4}(?:[\w\"'@%]{1,80}\s{1,4}){0,6}password\s{1,4})"
        r"\\{0,3}'(?P<secret>[^'\s\\]{4,256})\\{0,3}'",
        is_given,
    ),
    after(
        "json-web-key",
        "kty",
        r"\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\"(?P<secret>[a-z0-9_-]{20,1400})",
    ),
)
"""Secrets that are recognised by the text before them. The patterns are for text in lower case."""

OPTIONS = (
    option(
        "command-line-user",
        "-u",
        "curl|lftp|ftp|wget|https?",
        rf"""(?:{_SPACE})?(?:{_QUOTE})?[^\s:,"'\\]{{1,128}}[:,](?:{_QUOTE})?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    option(
        "command-line-user",
        "--user",
        "curl|lftp|ftp|wget|https?|etcdctl",
        rf"""{_SPACE}(?:{_QUOTE})?[^\s:,"'\\]{{1,128}}[:,](?:{_QUOTE})?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    option(
        "command-line-user",
        "-a",
        "https?",
        rf"""(?:uth)?{_SPACE}["']?[^\s:"'\\]{{1,128}}:["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
        word="http",
    ),
    option("database-password", "-p", r"(?:mysql|mariadb)\w{0,10}", WORD),
    option(
        "login-password",
        "-p",
        r"sshpass|(?:docker|podman|buildah|helm registry|crane auth|oras|skopeo|az|cf|oc|heroku) login|twine"
        r"|clickhouse(?:-client)?|beeline|snowsql|sql server create|racadm|rdesktop|psexec(?:64)?|ncftp\w{0,4}"
        r"|svn|mongo(?:sh|dump|restore|export|import)?|cqlsh|neo4j|cypher-shell",
        rf"(?:{_SPACE})?{WORD}",
    ),
    option(
        "command-line-user",
        "--auth",
        "https?|httpie|xh",
        rf"""{_SPACE}["']?[^\s:"'\\]{{1,128}}:["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    option(
        "login-password",
        "-U",
        r"smbclient|rpcclient|smbget|net (?:rpc|ads)",
        rf"""(?:{_SPACE})?["']?[^\s%"']{{1,80}}%{WORD}""",
    ),
    option(
        "login-password",
        "-p",
        "security|supabase|x?altool|notarytool|ssh-keygen|iscsiadm"
        "|influx|evil-winrm|crackmapexec|netexec|nxc|user(?:add|mod)",
        rf"{_SPACE}{WORD}",
    ),
    option("login-password", "-N", "ssh-keygen", rf"{_SPACE}{WORD}"),
    option("login-password", "-P", "ssh-keygen|security import", rf"{_SPACE}{WORD}"),
    option("login-password", "-w", "add-(?:generic|internet)-password", rf"{_SPACE}{WORD}"),
    option("login-password", "-s", "ldappasswd", rf"{_SPACE}{WORD}", word="ldappasswd"),
    option("login-password", "-t", "doctl auth init|glab auth login", rf"{_SPACE}{WORD}", word="auth"),
    option("login-password", "-k", "nuget push", rf"{_SPACE}{WORD}"),
    option("login-password", "--key", "gem push", rf"{_SPACE}{WORD}"),
    option("login-password", "--auth", "netlify", rf"{_SPACE}{WORD}"),
    option("archive-password", "-hp", "rar", WORD),
    option(
        "login-password",
        "--value",
        r"put-parameter|(?:put|create|update)-secret(?:-value)?|keyvault secret set|secrets? (?:set|create|add)",
        rf"{_SPACE}{WORD}",
    ),
    option("openssl-password", "-k", r"openssl enc", rf"{_SPACE}{WORD}"),
    option("cookie", "-b", "curl", r"""\s{1,4}["']?[\w.-]{1,60}=(?P<secret>[^\s"'\\]{8,1024})""", word="curl"),
    option("login-password", "-a", r"(?:redis|valkey|keydb)-cli", rf"(?:{_SPACE})?{WORD}", word="-cli"),
    option("login-password", "-w", r"ldap\w{3,10}", rf"(?:{_SPACE})?{WORD}"),
    option("archive-password", "-P", r"zip|unzip|sqlcmd|bcp|ipmitool|mosquitto_\w{2,4}", rf"(?:{_SPACE})?{WORD}"),
    option("archive-password", "-p", r"7za?|rar|unrar", WORD),
)
"""Secrets in options of one letter, which have another meaning in other commands."""
