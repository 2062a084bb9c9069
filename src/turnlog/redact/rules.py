"""The table of rules: what each issuer's secrets look like, and which names announce one.

A rule is tried only on texts that hold one of its literals. Every pattern begins at a literal and has bounds, so that
the time for a text grows with its length alone. The shapes are those that the issuers document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from turnlog.redact.placeholders import is_given, is_key_body, is_password, is_random


class Rule(NamedTuple):
    """A kind of secret. Its group `secret`, else the whole match, is what is masked."""

    name: str
    literals: tuple[str, ...]
    """Every match contains one of them; lower case where case does not matter."""
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    """What else must hold of the secret, besides being no placeholder."""
    any_case: bool = False


def _token(name: str, literals: str, shape: str) -> Rule:
    """A secret that its own beginning tells, and that no longer word goes around."""
    return Rule(name, tuple(literals.split()), re.compile(rf"(?<![A-Za-z0-9])(?:{shape})(?![A-Za-z0-9])"))


def _after(name: str, literals: str, shape: str, check: Callable[[str], bool] | None = None) -> Rule:
    """A secret that the text before it tells, in any case."""
    return Rule(name, tuple(literals.split()), re.compile(shape, re.IGNORECASE), check, any_case=True)


_IS = r"""\\{0,3}["'`]?\s{0,4}(?::=|=>|=(?!=)|:)\s{0,4}\\{0,3}["'`]?"""
"""Between a name and its value: `key: "…"`, `key=…`, `\\"key\\": \\"…\\"`."""

_VALUE = r"""(?P<secret>[^\s"'`,;&|<>\\]{%d,512})"""
"""A value up to where a language would end it."""

_PASSWORD = r"""(?P<secret>(?:[^\s"'`,;&\\]|[,;&](?=[^\s"'`\\])(?!\w{1,30}=)){6,256})"""
"""A password may hold what ends a value elsewhere (`a=1&b=2`, `a=1;b=2`), unless another value follows."""

PASSWORD_NAMES = r"(?:password|passwd|passphrase|passcode|pwd)"
KEY_NAMES = (
    r"(?:api[_-]?key|apikey|secret[_-]?key|access[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key"
    r"|auth[_-]?key|account[_-]?key|client[_-]?secret|app[_-]?secret|secret|access[_-]?token|auth[_-]?token"
    r"|refresh[_-]?token|id[_-]?token|bearer[_-]?token|session[_-]?token|api[_-]?token|token|credentials?)"
)
_MORE = r"(?:[_-]?(?:key|base|value|prod|production|dev|test|staging|live|local|\d{1,3}))?"

_HEADERS = r"(?:proxy-)?authorization|x-(?:goog-)?api-key|api-key|x-auth-token|x-access-token|private-token"

TOKENS = (
    _token("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,256}"),
    _token("openai-key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,256}|sk-[A-Za-z0-9]{32,64}"),
    _token("openrouter-key", "sk-or-", r"sk-or-(?:v\d-)?[A-Za-z0-9]{32,128}"),
    _token("google-api-key", "AIza AQ.Ab", r"AIza[A-Za-z0-9_-]{35}|AQ\.Ab[A-Za-z0-9_-]{30,128}"),
    _token("google-oauth-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,64}"),
    _token("google-oauth-token", "ya29. 1//0", r"ya29\.[A-Za-z0-9_-]{20,512}|1//0[A-Za-z0-9_-]{30,256}"),
    _token("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{32,64}"),
    _token("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,128}"),
    _token("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,64}"),
    _token("replicate-token", "r8_", r"r8_[A-Za-z0-9]{32,64}"),
    _token("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,64}"),
    _token("fireworks-key", "fw_", r"fw_[A-Za-z0-9]{20,64}"),
    _token("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9]{32}_[A-Za-z0-9]{10}"),
    _token("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,64}"),
    _token("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,128}"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    _token("github-fine-grained-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _token("gitlab-token", "gl", r"gl(?:pat|dt|rt|rtr|ft|fft|oas|soat|agent|cbt|ptt|imt|wt)-[A-Za-z0-9_.-]{20,300}"),
    _token("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,64}"),
    _token("pypi-token", "pypi-", r"pypi-Ag[A-Za-z0-9_-]{50,512}"),
    _token("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _token("crates-io-token", "cio", r"cio[A-Za-z0-9]{32}"),
    _token("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}"),
    _token("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,256}"),
    _token("slack-app-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,256}"),
    _token(
        "slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/+-]{20,200})"
    ),
    _token(
        "discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{15,22}/[\w-]{50,100})"
    ),
    _token("telegram-bot-token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}"),
    _token("stripe-key", "sk_ rk_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,247}"),
    _token("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,128}={0,2}"),
    _token("square-token", "sq0 EAAA", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60}"),
    _token("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _token("aws-access-key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _token("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    _token("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{16,24}"),
    _token("digitalocean-token", "do", r"do[opr]_v1_[a-f0-9]{64}"),
    _token("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _token("heroku-key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,64}"),
    _token("flyio-token", "fo1_ fm", r"fo1_[A-Za-z0-9_-]{43}|fm[12]_[A-Za-z0-9+/_-]{60,512}={0,3}"),
    _token("vercel-token", "vc", r"vc[pkcar]_[A-Za-z0-9]{24,64}"),
    _token("supabase-token", "sb", r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,64}"),
    _token("vault-token", "hv", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    _token("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    _token("pulumi-token", "pul-", r"pul-[a-f0-9]{40}"),
    _token("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,90}"),
    _token("grafana-token", "glc_ glsa_", r"glc_[A-Za-z0-9+/]{32,400}={0,2}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    _token("new-relic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("sentry-token", "sntry", r"sntrys_[A-Za-z0-9+/=_-]{60,400}|sntryu_[a-f0-9]{64}"),
    _token("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _token("mailgun-key", "key-", r"key-[a-f0-9]{32}"),
    _token("mailchimp-key", "-us", r"[a-f0-9]{32}-us\d{1,2}"),
    _token("twilio-key", "SK", r"SK[a-f0-9]{32}"),
    _token("atlassian-token", "ATATT ATCTT", r"AT[AC]TT3[A-Za-z0-9_=-]{60,300}"),
    _token("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _token("notion-token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}"),
    _token("figma-token", "figd_ figdr_", r"figdr?_[A-Za-z0-9_-]{36,64}"),
    _token("postman-key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _token("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _token("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    _token("age-secret-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _token("langfuse-key", "sk-lf-", r"sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    _token("elevenlabs-key", "sk_", r"sk_[a-f0-9]{48}"),
    _token("together-key", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_-]{40,64}"),
    _token("cerebras-key", "csk-", r"csk-[a-z0-9]{40,64}"),
    _token("llamacloud-key", "llx-", r"llx-[A-Za-z0-9]{40,64}"),
    _token("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9]{4,12}_[A-Za-z0-9]{40,128}"),
    _token("jina-key", "jina_", r"jina_[A-Za-z0-9_-]{48,80}"),
    _token("firecrawl-key", "fc-", r"fc-[a-f0-9]{32}"),
    _token("e2b-key", "e2b_", r"e2b_[a-f0-9]{40}"),
    _token("cursor-key", "key_ crsr_", r"(?:key|crsr)_[a-f0-9]{64}"),
    _token(
        "aws-session-token",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz",
        r"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9+/]{100,2000}={0,2}",
    ),
    _token("azure-client-secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _token(
        "azure-signed-key", "AZDO JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"
    ),
    _token(
        "cloudflare-token",
        "cfut_ cfat_ cfk_ v1.0-",
        r"cf(?:ut|at|k)_[A-Za-z0-9_-]{40,64}|v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    ),
    _token("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,64}"),
    _token("render-key", "rnd_", r"rnd_[A-Za-z0-9]{24,64}"),
    _token("neon-key", "napi_", r"napi_[a-z0-9]{48,80}"),
    _token("mongodb-atlas-secret", "mdb_sa_sk_", r"mdb_sa_sk_[A-Za-z0-9_-]{32,64}"),
    _token("sonar-token", "sq", r"sq[pua]_[a-f0-9]{40}"),
    _token("sourcegraph-token", "sgp_", r"sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}"),
    _token("circleci-token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{16,32}_[a-f0-9]{40}"),
    _token("buildkite-token", "bk", r"bk(?:ua|at|ct|cq|pat)_[A-Za-z0-9]{32,64}"),
    _token("posthog-key", "phx_", r"phx_[A-Za-z0-9]{40,64}"),
    _token("dynatrace-token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _token("tailscale-key", "tskey-", r"tskey-(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,64}"),
    _token("facebook-token", "EAA", r"EAA[A-Za-z0-9]{100,400}"),
    _token("dropbox-token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_-]{120,2000}"),
    _token("brevo-key", "xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _token("resend-key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32}"),
    _token("onepassword-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_-]{200,4000}={0,2}"),
    _token("bitbucket-token", "ATBB", r"ATBB[A-Za-z0-9]{28,40}"),
    _token("mapbox-token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{20,40}"),
    _token(
        "encoded-private-key",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0Eg|BFQyBQ|BPUEVOU1NI|BFTkNSWVBURUQg|BEU0Eg)[A-Za-z0-9+/]{80,20000}={0,2}",
    ),
    _token("jwt", "eyJ", r"(?<![_-])eyJ[A-Za-z0-9_-]{10,4096}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{10,2048}"),
)
"""Secrets with a shape of their own."""

PLACES = (
    Rule(
        "private-key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?P<secret>(?:[^-]|-(?!----)){0,50000}(?=-----END )|[A-Za-z0-9+/=\s\\→:|]{0,50000})"
        ),
        is_key_body,
    ),
    _after(
        "connection-string",
        "://",
        r"""://[^\s:@/?#"'`\\<>]{0,128}:(?P<secret>[^\s@/"'`\\<>]{1,256})@(?=[\w\[$])""",
        is_given,
    ),
    _after(
        "authorization-header",
        "authorization api-key x-auth-token x-access-token private-token",
        rf"""(?:{_HEADERS}){_IS}\s{{0,4}}(?:(?:bearer|basic|token|digest|apikey|bot)\s{{1,4}})?{_VALUE % 12}""",
        is_random,
    ),
    _after("bearer-token", "bearer", r"\bbearer\s{1,4}(?P<secret>[a-z0-9._~+/=-]{16,4096})", is_random),
    _after(
        "cookie",
        "cookie",
        r"\bcookie:[^\S\n]{0,4}(?P<secret>[\w.-]{1,64}=[^\s;:\"'\\]{16,1024}"
        r"(?:;[^\S\n]{0,2}[\w.-]{1,64}=[^\s;:\"'\\]{1,1024}){0,20})",
        is_random,
    ),
    _after(
        "aws-secret-key", "secret", rf"aws_?(?:secret)_?(?:access)?_?key{_IS}(?P<secret>[a-z0-9/+]{{40}})(?![a-z0-9/+])"
    ),
    _after(
        "azure-key", "key", rf"(?:account|sharedaccess|shared_access_)key{_IS}(?P<secret>[a-z0-9+/]{{42,86}}={{1,2}})"
    ),
    _after(
        "signed-url",
        "sig x-amz-",
        r"[?&](?:sig|x-amz-signature|x-amz-security-token)=(?P<secret>[a-z0-9%+/=_-]{32,2048})",
    ),
    _after(
        "command-line-password",
        "--",
        rf"--(?:{PASSWORD_NAMES}|{KEY_NAMES})[= ]\s{{0,4}}[\"']?{_PASSWORD}",
        is_password,
    ),
    _after(
        "command-line-user",
        "curl wget http",
        r"(?:curl|wget|https?)\s[^\n]{0,200}?\s(?:-u|--user|-a)[ =]"
        r"""["']?[^\s:"'\\]{1,128}:(?P<secret>[^\s"'\\]{3,256})""",
        is_given,
    ),
    _after(
        "netrc-password",
        "machine",
        r"\bmachine\s{1,4}\S{1,253}\s{1,8}login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<secret>[^\s\"'\\]{1,256})",
    ),
    _after(
        "npmrc-password",
        "_auth _password",
        rf":?_(?:auth|authtoken|password)\s{{0,2}}=\s{{0,2}}{_VALUE % 8}",
        is_password,
    ),
    _after("password", "pass pwd", rf"{PASSWORD_NAMES}{_MORE}{_IS}{_PASSWORD}", is_password),
    _after(
        "named-secret", "key secret token credential", rf"(?<!publickey){KEY_NAMES}{_MORE}{_IS}{_VALUE % 12}", is_random
    ),
)
"""Secrets that are recognised by their context."""

RULES: tuple[Rule, ...] = (*TOKENS, *PLACES)
"""In the order in which they are tried: who issued a secret says more than its position."""

PASSWORD_FIELD = re.compile(rf"{PASSWORD_NAMES}{_MORE}", re.IGNORECASE)
KEY_FIELD = re.compile(rf"(?:{_HEADERS}|{KEY_NAMES}){_MORE}", re.IGNORECASE)
"""Names of JSON fields whose whole value is a secret (they may have more in front: `db_password`)."""
