"""Passwords that a command takes by position or from a pipe, without an option or a name before them."""

from __future__ import annotations

from turnlog.redact.placeholders import is_given, is_password, is_random
from turnlog.redact.rule import WORD, Rule, Shape, after

_REST = r"[^\n|;]{0,200}?"
"""Other words of the same command."""

_TWO = r"\s{1,4}\S{1,200}\s{1,4}"
"""One word in front of the password: a user."""

_READER = (
    r"[^\n|]{0,60}?(?<![\w-])(?:passwd\s[^\n|;]{0,200}?--stdin|sudo -s|cryptsetup|pass insert|secret-tool store"
    r"|[^\n|]{1,80}--password-stdin|openssl\s[^\n|]{0,80}stdin|kinit|gpg\s[^\n|]{0,80}passphrase-fd)"
)
"""What reads a password from a pipe."""

COMMANDS = (
    after(
        "login-password", "redis-cli", rf"redis-cli\s{_REST}(?<=\s)auth\s{{1,4}}(?:default\s{{1,4}})?{WORD}", is_given
    ),
    after("login-password", "mysqladmin", rf"mysqladmin\s{_REST}(?<=\s)password\s{{1,4}}{WORD}", is_given),
    after(
        "login-password",
        "--stdin|sudo -s|cryptsetup|pass insert|secret-tool|password-stdin| stdin|:stdin|kinit|passphrase-fd",
        rf"(?:echo|printf)\s{{1,4}}(?:-\w\s{{1,4}})?{WORD}(?:\\{{1,4}}n)?[\"']?\s{{0,4}}\|{_READER}",
        is_given,
    ),
    after(
        "login-password",
        "<<<",
        r"(?:sudo\s{1,4}-\w{0,4}s|kinit|passwd|cryptsetup|--password-stdin|--with-token|pass insert|env add)(?![\w-])"
        rf"{_REST}<<<\s{{0,4}}{WORD}",
        is_given,
    ),
    after(
        "login-password",
        "rabbitmqctl",
        rf"rabbitmqctl\s{_REST}(?:add_user|change_password|authenticate_user)\s{{1,4}}\S{{1,80}}\s{{1,4}}{WORD}",
        is_given,
    ),
    after(
        "login-password",
        "alias set|config host add",
        r"mc(?<![\w-]mc)\s{1,4}(?:alias set|config host add)"
        rf"\s{{1,4}}\S{{1,80}}\s{{1,4}}\S{{1,200}}\s{{1,4}}\S{{1,128}}\s{{1,4}}{WORD}",
        is_given,
    ),
    after("wifi-password", "wpa_passphrase", rf"wpa_passphrase\s{{1,4}}\S{{1,80}}\s{{1,4}}{WORD}", is_given),
    after("wifi-password", "wifi connect", rf"wifi connect\s{_REST}(?<=\s)password\s{{1,4}}{WORD}", is_given),
    after(
        "login-password",
        "bw login|bw unlock",
        rf"bw(?<!\wbw)\s{{1,4}}(?:unlock|login\s{{1,4}}[^\s@]{{1,100}}@\S{{1,100}})\s{{1,4}}(?!-){WORD}",
        is_password,
    ),
    after(
        "login-password", "smbclient", rf"smbclient\s{{1,4}}[\"']?(?://|\\\\)\S{{1,200}}\s{{1,4}}(?!-){WORD}", is_given
    ),
    after("login-password", "rclone obscure", rf"rclone obscure\s{{1,4}}{WORD}", is_given),
    after(
        "login-password",
        "encrypt_string",
        rf"ansible-vault\s{{1,4}}encrypt_string\s{{1,4}}(?:--?[\w-]{{1,30}}[ =]\S{{1,80}}\s{{1,4}}){{0,3}}(?!-){WORD}",
        is_given,
    ),
    after(
        "login-password",
        "net use ",
        rf"net use\s[^\n|;]{{0,20}}?\\{{2,8}}\S{{1,200}}\s{{1,4}}(?![/*]){WORD}",
        is_password,
    ),
    after("login-password", "net user ", rf"(?<![\w.-])net user{_TWO}(?![/*]){WORD}", is_password),
    after("login-password", "cf auth ", rf"(?<![\w-])cf auth{_TWO}{WORD}", is_given),
    after("login-password", "activate-refresh-token", rf"activate-refresh-token{_TWO}{WORD}", is_given),
    after("login-password", "set-initial-password", rf"set-initial-password\s{{1,4}}(?!-){WORD}", is_given),
    after("login-password", "drush ", rf"drush\s{_REST}(?:user:password|upwd){_TWO}{WORD}", is_given),
    after(
        "login-password", "mosquitto_passwd", rf"mosquitto_passwd\s{_REST}-b{_TWO}\S{{1,80}}\s{{1,4}}{WORD}", is_given
    ),
    after("named-secret", "setapikey", rf"setapikey\s{{1,4}}(?!-){WORD}", is_given),
    after(
        "login-password",
        "sqlplus",
        rf"sqlplus\s{_REST}[\w$#]{{1,60}}/\\{{0,3}}\"?(?P<secret>[^\s\"'@/\\]{{4,128}})",
        is_password,
    ),
    after("login-password", "isql", rf"(?<![\w-])isql\s{_REST}(?<=\s)[\w.-]{{1,60}}{_TWO}{WORD}", is_password),
    after("login-password", "ftp>", rf"ftp>\s{{0,4}}user{_TWO}{WORD}", is_given),
    after(
        "login-password",
        "> auth ",
        rf"(?:redis[\w-]{{0,10}}|:\d{{2,5}}(?:\[\d\])?)> auth\s{{1,4}}(?:default\s{{1,4}})?{WORD}",
        is_password,
    ),
    after(
        "named-secret",
        "reg add",
        rf"reg add\s{_REST}/v\s{{1,4}}(?:\\{{0,3}}\")?[\w-]{{0,40}}(?:passw(?:or)?[dt]|pwd|secret|token|key)"
        rf"(?:\\{{0,3}}\")?\s{_REST}/d\s{{1,4}}{WORD}",
        is_password,
    ),
    after("login-password", "cmdkey|winrs", rf"(?:cmdkey|winrs)\s{_REST}[/-]p(?:ass)?:{WORD}", is_given),
    after("login-password", "schtasks", rf"schtasks\s{_REST}/rp\s{{1,4}}{WORD}", is_given),
    after(
        "wifi-password",
        "sec.psk|set_network",
        rf"(?:sec\.psk|set_network \d{{1,3}} psk)\s{{1,4}}\\{{0,3}}'?{WORD}",
        is_given,
    ),
    after("login-password", "creds", rf"--(?:src-|dest-)?creds[ =][^\s:]{{1,80}}:{WORD}", is_given),
    after("named-secret", "pypi-token", rf"pypi-token\.\S{{1,60}}\s{{1,4}}{WORD}", is_given),
    after("login-password", "http-basic.", rf"http-basic\.\S{{1,60}}{_TWO}{WORD}", is_given),
    after(
        "login-password",
        "scram-sha-",
        r"scram-sha-\d{3}=\[[^\]\n]{0,40}?password=(?P<secret>[^\s\],'\"]{4,128})",
        is_given,
    ),
    after("named-secret", "x-auth", rf"x-auth(?:-key|-token)?(?:\\{{0,3}}[\"'])?:\s?{WORD}", is_random),
    after(
        "login-password",
        "-cmd |-command |_cmd |_command |<(",
        r"(?:pass\w{0,10}[-_](?:cmd|command)[ =]\\{0,3}[\"']?|key\s<\()echo\s(?:-\w\s)?"
        r"(?P<secret>[^\s\"'`\\)]{6,256})",
        is_given,
    ),
    # Each of several values behind one command is looked for on its own.
    after(
        "named-secret",
        "secrets set |secrets:set |config:set |kv put |kv patch |from-literal",
        rf"(?:secrets[ :]set|config:set|kv (?:put|patch)|secret\s{_REST}--from-literal)"
        rf"[ =]{_REST}(?<![\w.-])[\w.-]{{1,60}}=(?![\w.-]{{1,60}}=){WORD}",
        is_password,
    ),
    after("named-secret", "--secret-string", rf"--secret-string[ =]{WORD}", is_given),
    after("named-secret", "secret set ", rf"secret set\s{_REST}(?<=\s)(?:-b|--body)[ =]{WORD}", is_given),
    # A script that types: `expect`.
    after(
        "login-password",
        'send "|send \\|send -- ',
        r"(?<![\w-])send\s{1,4}(?:--\s)?\\{0,3}\"(?P<secret>[^\s\"\\]{6,128})\\{1,4}[rn]",
        is_password,
    ),
    after(
        "named-secret",
        "default:",
        r"(?:password|passphrase|secret|token|api_?key)\d?:"
        r"(?:(?:\r?\n|\\n)[ ]{1,20}(?!default)[a-z]{1,30}:[^\n\\]{0,120}){0,4}"
        rf"(?:\r?\n|\\n)[ ]{{1,20}}default:[ ]{{1,4}}{WORD}",
        is_password,
    ),
    # Two of them are in one command; `-a` and `-x` name algorithms.
    *(
        Rule(
            "login-password",
            ("snmp",),
            Shape(rf"snmp\w{{3,10}}\s{_REST}(?<=\s)-{letter}\s{{1,4}}{WORD}"),
            is_given,
        )
        for letter in "AXc"
    ),
)
"""Passwords of well-known commands. The patterns of `after` are for text in lower case."""
