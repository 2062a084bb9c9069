"""The table of rules: what each issuer's secrets look like, and which names and commands announce one.

A rule is tried only on texts that hold one of its literals. Every pattern has bounds, so that the time for a text grows
with its length alone. The shapes are those that the issuers document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from turnlog.redact.placeholders import (
    is_basic,
    is_cookie,
    is_given,
    is_key,
    is_key_body,
    is_password,
    is_random,
    is_url_token,
)


class Rule(NamedTuple):
    """A kind of secret. Its group `secret`, else the whole match, is what is masked."""

    name: str
    literals: tuple[str, ...]
    """Every match contains one of them; lower case where case does not matter."""
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    """What else must hold of the secret, besides being no placeholder."""
    any_case: bool = False
    """The pattern is for text in lower case."""
    begins: bool = False
    """A match begins with one of the literals, at the beginning of a word."""
    near: re.Pattern[str] | None = None
    """What must be before the match, on the same line."""


_BEFORE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;0-9]m)|(?<=\[K))"
    # A secret also begins after an escaped line end, a percent code or a control sequence.
)


def _token(name: str, literals: str, shape: str, check: Callable[[str], bool] | None = None) -> Rule:
    """A secret that is recognised by its beginning and is not part of a longer word."""
    return Rule(name, tuple(literals.split()), _whole(shape), check, begins=True)


def _inside(name: str, literals: str, shape: str) -> Rule:
    """A secret that is recognised by a literal inside it."""
    return Rule(name, tuple(literals.split()), _whole(shape))


def _whole(shape: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE}(?:{shape})(?![A-Za-z0-9])")


def _after(
    name: str, literals: str, shape: str, check: Callable[[str], bool] | None = None, near: str | None = None
) -> Rule:
    """A secret that is recognised by the text before it, in any case."""
    command = None if near is None else _command(near)
    return Rule(name, tuple(literals.split("|")), re.compile(shape), check, any_case=True, near=command)


def _option(name: str, option: str, commands: str, shape: str) -> Rule:
    """A secret in an option of some commands."""
    return Rule(
        name, (option,), re.compile(rf"""{option}(?<=[\s"'`]{option}){shape}"""), is_given, near=_command(commands)
    )


def _command(names: str) -> re.Pattern[str]:
    # A removed line of a diff begins with a dash.
    return re.compile(rf"(?:(?<![\w.-])|(?<=^-))(?:{names})(?![\w-])", re.MULTILINE)


_UUID = r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"

_SNOWFLAKE = " ".join(a + b + c for a in "MNO" for b in "DTjz" for c in "AEIMQUYcgk")
"""The first characters of base64 of a number."""

TOKENS = (
    _token("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,256}"),
    _token("openai-key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,256}|sk-[A-Za-z0-9]{32,64}"),
    _token("openrouter-key", "sk-or-", r"sk-or-(?:v\d-)?[A-Za-z0-9]{32,128}"),
    _token("google-api-key", "AIza AQ.Ab", r"AIza[A-Za-z0-9_-]{35}|AQ\.Ab[A-Za-z0-9_-]{30,128}"),
    _token("google-oauth-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,64}"),
    _token("google-oauth-token", "ya29. 1//0", r"ya29\.[A-Za-z0-9_-]{20,512}|1//0[A-Za-z0-9_-]{30,256}"),
    _token("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{32,64}", is_random),
    _token("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,128}"),
    _token("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,64}", is_random),
    _token("replicate-token", "r8_", r"r8_[A-Za-z0-9]{32,64}", is_random),
    _token("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,64}", is_random),
    _token("fireworks-key", "fw_", r"fw_[A-Za-z0-9]{20,64}", is_random),
    _token("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9]{32}_[A-Za-z0-9]{10}"),
    _token("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,64}"),
    _token("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,128}"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    _token("github-fine-grained-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _token(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glft- glfft- gloas- glsoat- glagent- glcbt- glptt- glimt- glwt-",
        r"gl(?:pat|dt|rt|rtr|ft|fft|oas|soat|agent|cbt|ptt|imt|wt)-[A-Za-z0-9_.-]{20,300}",
    ),
    _token("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,64}", is_random),
    _token("pypi-token", "pypi-", r"pypi-Ag[A-Za-z0-9_-]{50,512}"),
    _token("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _token("crates-io-token", "cio", r"cio[A-Za-z0-9]{32}"),
    _token("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}"),
    _token("slack-token", "xoxa xoxb xoxe xoxo xoxp xoxr xoxs", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,256}"),
    _token("slack-app-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,256}"),
    _inside(
        "slack-webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/+-]{20,200})"
    ),
    _inside(
        "discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{15,22}/[\w-]{50,100})"
    ),
    _inside("telegram-bot-token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}"),
    _token("stripe-key", "sk_ rk_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,247}"),
    _token("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,128}={0,2}"),
    _token(
        "square-token", "sq0atp- sq0csp- sq0idp- EAAA", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60}"
    ),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _token("aws-access-key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _token("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    _token("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{16,24}"),
    _token("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _token("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _token("heroku-key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,64}"),
    _token("flyio-token", "fo1_ fm1_ fm2_", r"fo1_[A-Za-z0-9_-]{43}|fm[12]_[A-Za-z0-9+/_-]{60,512}={0,3}"),
    _token("vercel-token", "vcp_ vck_ vca_ vcr_ vcc_", r"vc[pkcar]_[A-Za-z0-9]{24,64}"),
    _token("supabase-token", "sbp_ sb_secret_", r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,64}"),
    _token("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    _inside("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    _token("pulumi-token", "pul-", r"pul-[a-f0-9]{40}"),
    _token("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,90}"),
    _token("grafana-token", "glc_ glsa_", r"glc_[A-Za-z0-9+/]{32,400}={0,2}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    _token("new-relic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("sentry-token", "sntrys_ sntryu_", r"sntrys_[A-Za-z0-9+/=_-]{60,400}|sntryu_[a-f0-9]{64}"),
    _token("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _token("mailgun-key", "key-", r"key-[a-f0-9]{32}"),
    Rule(
        "facebook-app-token",
        ("|",),
        re.compile(r"\|(?<=\d{15}\|)(?P<secret>[A-Za-z0-9_-]{27})(?![A-Za-z0-9_-])"),
        is_random,
    ),
    _inside("mailchimp-key", "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9", r"[a-f0-9]{32}-us\d{1,2}"),
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
    _inside("azure-client-secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _inside(
        "azure-signed-key", "AZDO JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"
    ),
    _token(
        "cloudflare-token",
        "cfut_ cfat_ cfk_ v1.0-",
        r"cf(?:ut|at|k)_[A-Za-z0-9_-]{40,64}|v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    ),
    _token("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,64}"),
    _token("render-key", "rnd_", r"rnd_[A-Za-z0-9]{24,64}", is_random),
    _token("neon-key", "napi_", r"napi_[a-z0-9]{48,80}"),
    _token("mongodb-atlas-secret", "mdb_sa_sk_", r"mdb_sa_sk_[A-Za-z0-9_-]{32,64}"),
    _token("sonar-token", "sqp_ squ_ sqa_", r"sq[pua]_[a-f0-9]{40}"),
    _token("sourcegraph-token", "sgp_", r"sgp_(?:(?:[A-Fa-f0-9]{16}|local)_)?[A-Fa-f0-9]{40}"),
    _token("circleci-token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{16,32}_[a-f0-9]{40}"),
    _token("buildkite-token", "bkua_ bkat_ bkct_ bkcq_ bkpat_", r"bk(?:ua|at|ct|cq|pat)_[A-Za-z0-9]{32,64}"),
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
    _token(
        "jwt",
        "eyJ",
        r"(?<![_-])eyJ[A-Za-z0-9_-]{10,4096}\.(?:eyJ[A-Za-z0-9_-]{10,8192}(?:\.[A-Za-z0-9_-]{0,2048})?"
        # Encrypted: header, key, initialization vector, text and tag (RFC 7516).
        r"|[A-Za-z0-9_-]{0,1024}\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{20,48})",
    ),
    _token(
        "onepassword-secret-key", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"
    ),
    _token("adobe-secret", "p8e-", r"p8e-[A-Za-z0-9]{32}"),
    _token("amazon-mws-key", "amzn.mws.", rf"amzn\.mws\.{_UUID}"),
    _token("artifactory-key", "AKC cmVmd", r"AKC[a-zA-Z0-9]{1}[A-Za-z0-9]{60,75}|cmVmd[A-Za-z0-9]{59}"),
    _token("asana-token", "0/ 1/ 2/", r"[0-2]/(?:\d{10,20}/)?\d{10,20}:[a-f0-9]{32}"),
    _token(
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-]"
        r"[a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
    ),
    _token("aws-appsync-key", "da2-", r"da2-[a-z0-9]{26}"),
    _token("aws-bedrock-short-key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/]{60,4000}={0,2}"),
    _token("braintree-token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    _token("canva-secret", "cnvca", r"cnvca[A-Za-z0-9_-]{35,60}"),
    _token("clickhouse-secret", "4b1d", r"4b1d[A-Za-z0-9]{38}"),
    _token("clojars-token", "CLOJARS_", r"CLOJARS_[a-f0-9]{60}"),
    _token("composio-key", "ak_", r"ak_[A-Za-z0-9_-]{18,40}", is_key),
    _token("contentful-token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,64}"),
    _token("defined-networking-key", "dnkey-", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    _token("discord-bot-token", _SNOWFLAKE, r"[MNO][A-Za-z0-9]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    _token(
        "docker-swarm-token", "SWMTKN-1- SWMKEY-1-", r"SWMTKN-1-[a-z0-9]{50}-[a-z0-9]{25}|SWMKEY-1-[A-Za-z0-9+/]{43}"
    ),
    _token("duffel-token", "duffel_", r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}"),
    _token("easypost-key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _token("flutterwave-key", "FLWSECK", r"FLWSECK(?:_TEST)?-[a-f0-9]{12,32}-X"),
    _token("frameio-token", "fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),
    _token("gitlab-runner-token", "GR1348941", r"GR1348941[A-Za-z0-9_-]{20}"),
    _token("gocardless-token", "live_", r"(?<![_-])live_[A-Za-z0-9_=-]{40}", is_key),
    _token("google-hmac-key", "GOOG1", r"GOOG1E[A-Z0-9]{50,57}"),
    _token("grafana-key", "eyJrIjoi", r"eyJrIjoi[A-Za-z0-9]{70,400}={0,3}"),
    _token("harness-token", "pat. sat.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    _token("hubspot-token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", rf"pat-(?:na|eu|ap)\d-{_UUID}"),
    _token("infracost-key", "ico-", r"ico-[A-Za-z0-9]{32}"),
    _token("infisical-token", "st.", r"st\.[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    _token("intra42-secret", "s-s4t2", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    _token("launchdarkly-key", "sdk- api-", rf"(?:sdk|api)-{_UUID}"),
    _token("nats-seed", "SA SC SN SO SU SX", r"S[ACNOUX][A-Z2-7]{56}", is_key),
    _token("new-relic-insert-key", "NRII-", r"NRII-[A-Za-z0-9_-]{32}"),
    _token("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _token("octopus-key", "API-", r"API-[A-Z0-9]{25,32}"),
    _token("openshift-token", "sha256~", r"sha256~[A-Za-z0-9_-]{43}"),
    _token(
        "paseto", "v1. v2. v3. v4.", r"v[1-4]\.(?:local|public)\.[A-Za-z0-9_-]{60,4096}(?:\.[A-Za-z0-9_-]{1,1024})?"
    ),
    _token("prefect-key", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{36}"),
    _token("readme-key", "rdme_", r"rdme_[a-z0-9]{60,80}"),
    _token("riot-key", "RGAPI-", rf"RGAPI-{_UUID}"),
    _token("salesforce-session", "00D", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,120}"),
    _token("scalingo-token", "tk-us-", r"tk-us-[A-Za-z0-9_-]{48}"),
    _token("settlemint-token", "sm_", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16,32}"),
    _token("shippo-token", "shippo_", r"shippo_(?:live|test)_[A-Za-z0-9]{40}"),
    _token("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_.=-]{40,70}"),
    _token("wakatime-key", "waka_", rf"waka_{_UUID}"),
    _token("wallet-key", "xprv yprv zprv tprv", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{107,108}"),
    _token("x-bearer-token", "AAAAAAAAAAAAAAAAAAAAA", r"A{21}[A-Za-z0-9]{20,40}(?:%2[BF]|[+/])[A-Za-z0-9%+/=]{20,80}"),
    _token(
        "yandex-token",
        "AQVN y0_ t1.",
        r"AQVN[A-Za-z0-9_-]{35,38}|y0_[A-Za-z0-9_-]{50,62}|t1\.[A-Z0-9a-z_-]{2,400}=[A-Za-z0-9_-]{86}=?",
    ),
)
"""Secrets with a shape of their own."""

_QUOTE = r"""\\{0,3}["'`]"""

_IS = rf"""(?:{_QUOTE})?\]?\s{{0,4}}(?::=|=>|=(?!=)|:|,(?=\s?\\{{0,3}}["']))\s{{0,4}}\[?(?:{_QUOTE})?"""
"""Between a name and its value: `key: "…"`, `key=…`, `\\"key\\": \\"…\\"`, `"key", "…"`."""

_NOT_BLANK = r"[^\s\\]{1,128}"

_SPACE = r"""(?:\s{1,4}|=|["'],\s{0,4}["']?)"""
"""Between an option and its value, in a shell and in a list of arguments."""

_GAP = r"(?:\s|\\{1,3}[nrt]|[+>-](?=\s)|[\w./-]{1,60}:\d{1,6}:|\d{1,6}→){1,20}"
"""Between two words, maybe on different lines, also in escaped JSON, in a diff and behind the numbers of lines."""

_WORD = r"""["']?(?P<secret>[^\s"'`\\\x1b]{4,256})"""
"""A value in a shell."""

_VALUE = r"""(?P<secret>(?<=["'`])[^\s"'`\\\x1b]{8,512}(?=\\{0,3}["'`])|[^\s"'`,;&|<>\\\x1b]{8,512})"""
"""A value: up to the quote that ends it, or up to where a language would end it."""

HEADERS = r"authorization|x-(?:goog-)?api-key|api-key|x-auth-token|x-access-token|private-token"
"""Headers that sign a request."""

BLOCKS = (
    Rule(
        "private-key",
        ("PRIVATE KEY-----", "PRIVATE KEY BLOCK"),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?P<secret>(?:[^-]|-(?!----)){0,50000}(?=-----END )|[A-Za-z0-9+/=\s\\→:|]{0,50000})"
        ),
        is_key_body,
    ),
    Rule(
        "private-key-block",
        ("Private-Lines:", "OpenVPN Static key", "SSH2 ENCRYPTED PRIVATE KEY"),
        re.compile(
            r"(?:Private-Lines: \d{1,4}|BEGIN OpenVPN Static key V1-----|BEGIN SSH2 ENCRYPTED PRIVATE KEY ----)"
            r"(?:\s|\\{1,3}[nrt]){1,8}(?P<secret>\+?[A-Za-z0-9+/=]{16,100}"
            r"(?:(?:\s|\\{1,3}[nrt]){1,8}\+?[A-Za-z0-9+/=]{1,100}(?![\w-])){0,1000})"
        ),
        is_key_body,
    ),
    Rule(
        "password-hash",
        ("$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$7$", "$apr1$", "$argon2", "$scrypt$", "{SHA}", "{SSHA}"),
        re.compile(
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
    _after(
        "url-token",
        "://",
        r"""://(?P<secret>[^\s:@/?#"'`\\<>]{20,256})(?::(?:x-oauth-basic|x-oauth-token|api_token|x)?)?@(?=[\w\[$])""",
        is_url_token,
    ),
    _after(
        "connection-string",
        "://",
        r"""://[^\s:@/?#"'`\\<>\[]{0,128}:(?P<secret>[^\s@/"'`\\<>]{1,256})@(?=[\w\[$])""",
        is_given,
    ),
    _after(
        "basic-credentials",
        "basic ",
        rf"basic(?<![\w-]basic)\s{{1,4}}(?:{_QUOTE})?(?P<secret>[a-z0-9+/]{{8,400}}={{0,2}})",
        is_basic,
    ),
    _after(
        "authorization-header",
        "authorization|api-key|x-auth-token|x-access-token|private-token",
        rf"(?<![a-z0-9_])(?:{HEADERS}){_IS}\s{{0,4}}(?:(?:bearer|basic|token|digest|apikey|api-key|bot|key)\s{{1,4}})?{_VALUE}",
        is_random,
    ),
    _after("bearer-token", "bearer ", r"bearer(?<!\wbearer)\s{1,4}(?P<secret>[a-z0-9._~+/=-]{16,4096})", is_random),
    _after(
        "cookie",
        "cookie",
        rf"cookie(?<!\wcookie){_IS}"
        r"(?P<secret>[\w.-]{1,64}=[^\s;:\"'\\]{16,1024}(?:;[^\S\n]{0,2}[\w.-]{1,64}=[^\s;:\"'\\]{1,1024}){0,20})",
        is_cookie,
    ),
    _after(
        "aws-secret-key",
        "aws_secret|awssecret|secretaccesskey",
        rf"(?:aws_?secret_?(?:access)?_?key|secretaccesskey)(?:{_IS}|\s{{1,4}})(?P<secret>[a-z0-9/+]{{40}})(?![a-z0-9/+])",
    ),
    _after(
        "azure-key",
        "accountkey|sharedaccesskey|shared_access_key",
        rf"(?:account|sharedaccess|shared_access_)key{_IS}(?P<secret>[a-z0-9+/]{{42,86}}={{1,2}})",
    ),
    _after(
        "signed-url",
        "sig=|x-amz-",
        r"[?&](?:sig|x-amz-signature|x-amz-security-token)=(?P<secret>[a-z0-9%+/=_-]{32,2048})",
    ),
    _after("teams-webhook", "webhook.office.com/", r"webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{60,300})"),
    _after("zapier-webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/(?P<secret>[\w/-]{7,99}\w)"),
    _after(
        "sudo-password", "sudo -", rf"echo\s{{1,4}}{_WORD}[\"']?\s{{0,4}}\|\s{{0,4}}sudo\s{{1,4}}-\w{{0,4}}s", is_given
    ),
    _after(
        "vault-login",
        "vault login",
        r"vault login\s{1,4}(?:-[\w=-]{1,40}\s{1,4}){0,5}(?P<secret>[\w.-]{20,200})",
        is_random,
    ),
    _after(
        "secure-string",
        "convertto-securestring",
        rf"convertto-securestring\s{{1,4}}(?:-string\s{{1,4}})?{_QUOTE}(?P<secret>[^\s\"'`\\]{{4,256}})",
        is_given,
    ),
    _after(
        "keystore-password",
        "storepass|keypass",
        rf"(?:storepass|keypass){_SPACE}{_WORD}",
        is_given,
    ),
    _after("openssl-password", "pass:", rf"pass:(?<=[\s\"']pass:){_WORD}", is_given, near="openssl"),
    _after(
        "netrc-password",
        "machine",
        rf"machine(?<!\wmachine){_GAP}[^\s\\]{{1,253}}(?:{_GAP}(?:login|port|account){_GAP}[^\s\\]{{1,128}}){{1,3}}"
        rf"{_GAP}password{_GAP}"
        r"(?P<secret>[^\s\"'\\]{1,256})",
        is_given,
    ),
    _after(
        "pgpass-line",
        ":5432:|:5433:|:6432:|:*:",
        r""":(?<=[\w*]:)(?:5432|5433|6432|\*):[\w.*-]{1,63}:[\w.*@-]{1,63}:(?P<secret>[^\s:"'`\\]{4,256})""",
        is_password,
    ),
    _after(
        "npmrc-password",
        "_auth|_password",
        rf"_(?:auth|authtoken|password)\s{{0,2}}=\s{{0,2}}{_VALUE}",
        is_password,
    ),
    _after(
        "docker-auth",
        'auth"|auth\\',
        rf"[\"']auth{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?P<secret>[a-z0-9+/]{{8,400}}={{0,2}})",
        is_basic,
    ),
    _after("bundler-credentials", "contribsys", rf"contribsys_{{1,2}}com{_IS}(?P<secret>[a-f0-9]{{8}}:[a-f0-9]{{8}})"),
    _after(
        "bundler-credentials",
        "bundle_",
        rf"bundle_\w{{3,60}}{_IS}[^\s:\"'/]{{1,60}}:(?P<secret>[^\s\"'\\/]{{8,200}})",
        is_password,
    ),
    _after(
        "command-line-user",
        "curl",
        r"curl(?<![\w.]curl)(?:[^\n]|\\\n){0,300}?[\s\"'`]-(?:[a-z#]{0,10}u|-(?:proxy-)?user)"
        rf"(?:{_SPACE})?[\"']?[^\s:,\"'\\/]{{1,128}}:[\"']?(?P<secret>[^\s\"'\\\x1b]{{3,256}})",
        is_given,
    ),
    _after("telegram-bot-token", "/bot", r"/bot\d{6,12}:(?P<secret>[\w-]{30,50})(?![\w-])"),
    _after(
        "directive-password",
        "requirepass |masterauth |bindpw |_authtoken |auth default ",
        rf"(?:requirepass|masterauth|bindpw|_authtoken|auth default)[ \t]{{1,8}}{_WORD}",
        is_password,
    ),
    _after(
        "login-password", "sqlplus", r"sqlplus\s{1,4}(?:-\w\s{1,4}){0,3}\w{1,40}/(?P<secret>[^\s@]{3,128})@", is_given
    ),
    _after(
        "login-password",
        "net use",
        r"net user?\s{1,4}(?:[^\n]{1,100}/user:\S{1,80}|[\w.-]{1,40})\s{1,4}(?P<secret>[^\s/\\\"'*][^\s\"'\\]{3,128})",
        is_password,
    ),
    _after(
        "login-password", "freerdp|mstsc|rdesktop", rf"(?:freerdp|mstsc|rdesktop)[^\n]{{0,300}}?\s/p:{_WORD}", is_given
    ),
    _after(
        "login-password",
        "chpasswd",
        r"echo\s{1,4}(?:-\w\s{1,4})?[\"']?[\w.-]{1,40}:(?P<secret>[^\s\"'\\]{3,256})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd",
        is_given,
    ),
    _after(
        "login-password",
        "htpasswd",
        rf"htpasswd\s{{1,4}}-[a-z0-9]{{0,6}}b[a-z0-9]{{0,6}}\s{{1,4}}(?:\S{{1,200}}\s{{1,4}}){{1,2}}{_WORD}(?=[\"']?(?:\s*$|\n|\\|[\"']))",
        is_password,
    ),
    _after(
        "login-password",
        "password-stdin|--with-token",
        rf"(?:echo|printf)\s{{1,4}}(?:-n\s{{1,4}})?{_WORD}[\"']?\s{{0,4}}\|[^\n|]{{0,200}}(?:--password-stdin|--with-token)",
        is_given,
    ),
    _after(
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
    _after(
        "cookie",
        'value"|value\\',
        rf"name{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?:[\w.-]{{0,20}}(?:session|sess)(?:_?id)?|[\w.-]{{0,20}}sid"
        rf"|csrf\w{{0,10}}|auth){_QUOTE}"
        rf"(?:\s{{0,4}},\s{{0,20}}{_QUOTE}\w{{1,20}}{_QUOTE}\s{{0,4}}:\s{{0,4}}"
        rf"(?:{_QUOTE})?[\w /.-]{{1,60}}(?:{_QUOTE})?){{0,8}}"
        rf"\s{{0,4}},\s{{0,20}}{_QUOTE}value{_QUOTE}\s{{0,4}}:\s{{0,4}}{_QUOTE}(?P<secret>[^\s\"'\\]{{16,1024}})",
        is_key,
    ),
    _after(
        "cookie",
        "\ttrue|\tfalse|\\ttrue|\\tfalse",
        r"(?:true|false)(?:\t|\\{1,3}t)/[^\s\\]{0,80}(?:\t|\\{1,3}t)(?:true|false)(?:\t|\\{1,3}t)\d{1,12}(?:\t|\\{1,3}t)"
        r"[\w.-]{1,60}(?:\t|\\{1,3}t)(?P<secret>[^\s\"'\\]{16,1024})",
        is_random,
    ),
    _after(
        "password",
        "form-data",
        rf"form-data;\s{{0,4}}name={_QUOTE}[\w-]{{0,40}}(?:password|passwd|secret|token|api_?key){_QUOTE}{_GAP}"
        r"(?P<secret>[^\s\"'\\]{6,512})",
        is_password,
    ),
    _after("wifi-password", "wifi:", r"wifi:[^\n\"']{0,100}?;?p:(?P<secret>[^\s;\"'\\]{6,63});", is_given),
    _after(
        "password",
        "password",
        r"password (?:(?:for|of|to) [^\n:\"']{1,60} )?is:? [`\"']?(?P<secret>[^\s`\"',\\]{6,64}[^\s`\"',.\\])",
        is_password,
    ),
    _after("password", "is generated for", r"password is generated for \S{1,80}: (?P<secret>\S{6,64})", is_password),
    _after(
        "named-secret",
        "api key|access key|secret key|access token",
        rf"(?:api|access|secret) (?:key|token)\s?(?::|=|\bis:?\b)\s?[`\"']?{_VALUE}",
        is_random,
    ),
    _after(
        "element-password",
        "password",
        r"<(?:[\w-]{1,30}:)?\w{0,20}password\s[^<>]{1,200}>(?P<secret>[^\s<>]{4,256})</",
        is_password,
    ),
    _after(
        "basic-credentials",
        "auth=(|auth = (|auth(",
        rf"auth(?:=|\s=\s)?\(\s?{_QUOTE}[^\s\"'\\]{{1,100}}{_QUOTE},\s?{_QUOTE}(?P<secret>[^\s\"'\\]{{4,256}}){_QUOTE}",
        is_given,
    ),
    _after(
        "signing-secret",
        "jwt.",
        rf"jwt\.(?:sign|verify)\([^\n]{{0,200}}?,\s?{_QUOTE}(?P<secret>[^\s\"'`\\]{{10,512}}){_QUOTE}",
        is_random,
    ),
    _after("mail-password", "]:", r"\]:\d{1,5}\s{1,8}[^\s:\"']{1,128}:(?P<secret>[^\s\"'\\]{4,256})", is_password),
    _after("ftp-password", "pass ", rf"user {_NOT_BLANK}{_GAP}pass (?P<secret>[^\s\"'\\]{{4,256}})", is_password),
    _after(
        "sql-password",
        "identified |password '|password \\",
        r"(?:identified\s{1,4}(?:with\s{1,4}\w{1,40}\s{1,4})?by\s{1,4}(?:password\s{1,4})?"
        r"|(?:role|user|login|encrypted|with)\s{1,4}(?:[\w\"'@%]{1,80}\s{1,4}){0,6}password\s{1,4})"
        r"\\{0,3}'(?P<secret>[^'\s\\]{4,256})\\{0,3}'",
        is_given,
    ),
    _after(
        "json-web-key",
        "kty",
        r"\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\"(?P<secret>[a-z0-9_-]{20,1400})",
    ),
)
"""Secrets that are recognised by the text before them. The patterns are for text in lower case."""

OPTIONS = (
    _option(
        "command-line-user",
        "-u",
        "curl|lftp|ftp|wget|https?",
        rf"""(?:{_SPACE})?["']?[^\s:,"'\\]{{1,128}}[:,]["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    _option(
        "command-line-user",
        "--user",
        "curl|lftp|ftp|wget|https?",
        rf"""{_SPACE}["']?[^\s:,"'\\]{{1,128}}[:,]["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    _option(
        "command-line-user",
        "-a",
        "https?",
        rf"""(?:uth)?{_SPACE}["']?[^\s:"'\\]{{1,128}}:["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    _option("database-password", "-p", r"(?:mysql|mariadb)\w{0,10}", _WORD),
    _option(
        "login-password",
        "-p",
        r"sshpass|(?:docker|podman|helm registry|oras|skopeo|az|cf|heroku) login|influx|twine|clickhouse(?:-client)?"
        r"|svn|mongo(?:sh|dump|restore|export|import)?|cqlsh|neo4j|cypher-shell",
        rf"(?:{_SPACE})?{_WORD}",
    ),
    _option(
        "command-line-user",
        "--auth",
        "https?|httpie|xh",
        rf"""{_SPACE}["']?[^\s:"'\\]{{1,128}}:["']?(?P<secret>[^\s"'\\\x1b]{{3,256}})""",
    ),
    _option("login-password", "-U", r"smbclient|rpcclient|smbget", rf"""(?:{_SPACE})?["']?[^\s%"']{{1,80}}%{_WORD}"""),
    _option("openssl-password", "-k", r"openssl enc", rf"{_SPACE}{_WORD}"),
    _option("cookie", "-b", "curl", r"""\s{1,4}["']?[\w.-]{1,60}=(?P<secret>[^\s"'\\]{8,1024})"""),
    _option("login-password", "-a", r"(?:redis|valkey|keydb)-cli", rf"(?:{_SPACE})?{_WORD}"),
    _option("login-password", "-w", r"ldap\w{3,10}", rf"(?:{_SPACE})?{_WORD}"),
    _option("archive-password", "-P", r"zip|unzip|sqlcmd|bcp|ipmitool", rf"(?:{_SPACE})?{_WORD}"),
    _option("archive-password", "-p", r"7za?|rar|unrar", _WORD),
)
"""Secrets in options of one letter, which have another meaning in other commands."""

RULES: tuple[Rule, ...] = (*TOKENS, *BLOCKS, *PLACES, *OPTIONS)
"""In the order in which they are tried: who issued a secret says more than its position."""
