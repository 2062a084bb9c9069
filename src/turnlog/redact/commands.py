"""Passwords that a command takes by position or from a pipe, without an option or a name before them."""

from __future__ import annotations

import re

from turnlog.redact.placeholders import is_given, is_password
from turnlog.redact.rule import WORD, Rule, after

_REST = r"[^\n|;]{0,200}?"
"""Other words of the same command."""

COMMANDS = (
    after(
        "login-password", "redis-cli", rf"redis-cli\s{_REST}(?<=\s)auth\s{{1,4}}(?:default\s{{1,4}})?{WORD}", is_given
    ),
    after("login-password", "mysqladmin", rf"mysqladmin\s{_REST}(?<=\s)password\s{{1,4}}{WORD}", is_given),
    after(
        "login-password",
        "--stdin",
        rf"(?:echo|printf)\s{{1,4}}(?:-\w\s{{1,4}})?{WORD}[\"']?\s{{0,4}}\|[^\n|]{{0,60}}passwd\s{_REST}--stdin",
        is_given,
    ),
    after(
        "login-password",
        "<<<",
        rf"(?:sudo\s{{1,4}}-\w{{0,4}}s|kinit|passwd|cryptsetup|--password-stdin|--with-token)(?![\w-]){_REST}<<<\s{{0,4}}{WORD}",
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
    # Two of them are in one command; `-a` and `-x` name algorithms.
    *(
        Rule(
            "login-password",
            ("snmp",),
            re.compile(rf"snmp\w{{3,10}}\s{_REST}(?<=\s)-{letter}\s{{1,4}}{WORD}"),
            is_given,
        )
        for letter in "AXc"
    ),
)
"""Passwords of well-known commands. The patterns of `after` are for text in lower case."""
