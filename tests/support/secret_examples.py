"""What each rule finds and what it leaves. Secrets are random of a fixed seed: none was ever anybody's."""

import random
import string
from typing import NamedTuple

from support.held_out_secrets import held_out_secrets
from support.secret_kinds import blank, secrets

_random = random.Random(20261121)

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"


def some(length: int, letters: str = ALNUM) -> str:
    """Random characters: no run and no word is in them by design."""
    return "".join(_random.choice(letters) for _ in range(length - 2)) + letters[1] + letters[-1]


class Example(NamedTuple):
    """A text with a secret, and one that looks alike and holds none."""

    text: str
    secret: str
    harmless: str


def token(prefix: str, rest: str, harmless: str | None = None) -> Example:
    """A secret that is known by its beginning; harmless is a placeholder of the same beginning."""
    return Example(f"use {prefix}{rest} for it", prefix + rest, harmless or f"use {prefix}{'x' * len(rest)} for it")


def within(before: str, secret: str, after: str, harmless: str) -> Example:
    """A secret that is known by what is around it."""
    return Example(before + secret + after, secret, harmless)


_KEY_LINES = "\n".join(some(64, ALNUM + "+/") for _ in range(5))

_WRITTEN: dict[str, Example] = {
    "anthropic-key": token("sk-ant-", "api03-" + some(93), "sk-ant-…"),
    "openai-key": token("sk-", "proj-" + some(80), "the task-" + some(36) + " went on"),
    "openrouter-key": token("sk-or-v1-", some(64, HEX)),
    "google-api-key": token("AIza", some(35)),
    "google-oauth-secret": token("GOCSPX-", some(28)),
    "google-oauth-token": token("ya29.", some(120)),
    "groq-key": token("gsk_", some(52)),
    "xai-key": token("xai-", some(80)),
    "perplexity-key": token("pplx-", some(48)),
    "replicate-token": token("r8_", some(37)),
    "huggingface-token": token("hf_", some(34), "hf_hub_download(repo_id, filename)"),
    "fireworks-key": token("fw_", some(22)),
    "langsmith-key": token("lsv2_", f"pt_{some(32, HEX)}_{some(10, HEX)}"),
    "tavily-key": token("tvly-", "dev-" + some(32)),
    "nvidia-key": token("nvapi-", some(64)),
    "github-token": token("ghp_", some(36), "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    "github-fine-grained-token": token("github_pat_", f"{some(22)}_{some(59)}"),
    "gitlab-token": token("glpat-", some(20)),
    "npm-token": token("npm_", some(36), "npm_config_registry and npm_lifecycle_event"),
    "pypi-token": token("pypi-", "AgEIcHlwaS5vcmc" + some(70)),
    "rubygems-key": token("rubygems_", some(48, HEX)),
    "crates-io-token": token("cio", some(32)),
    "docker-token": token("dckr_pat_", some(27)),
    "slack-token": token("xoxb-", f"{some(12, '123456789')}-{some(24)}"),
    "slack-app-token": token("xapp-", f"1-A{some(10)}-{some(13, '123456789')}-{some(64, HEX)}"),
    "slack-webhook": within(
        "https://hooks.slack.com/services/", f"T{some(8)}/B{some(8)}/{some(24)}", "", "https://hooks.slack.com/docs"
    ),
    "discord-webhook": within(
        "https://discord.com/api/webhooks/",
        f"{some(18, '123456789')}/{some(68)}",
        "",
        "https://discord.com/api/webhooks/<id>/<token>",
    ),
    "telegram-bot-token": within("bot ", f"{some(10, '123456789')}:AA{some(33)}", " runs", "at 12345678:AA"),
    "stripe-key": token("sk_live_", some(24), "sk_test_...")._replace(harmless="sk_live_xxxxxxxxxxxxxxxxxxxxxxxx"),
    "stripe-webhook-secret": token("whsec_", some(32)),
    "square-token": token("sq0atp-", some(22)),
    "shopify-token": token("shpat_", some(32, HEX)),
    "aws-access-key": token("AKIA", some(16, BASE32), "AKIAIOSFODNN7EXAMPLE"),
    "aws-bedrock-key": token("ABSK", some(120)),
    "alibaba-key": token("LTAI", some(20)),
    "digitalocean-token": token("dop_v1_", some(64, HEX)),
    "databricks-token": token("dapi", some(32, HEX), "dapi" + some(12, HEX)),
    "heroku-key": token("HRKU-", some(50)),
    "flyio-token": token("fo1_", some(43)),
    "vercel-token": token("vcp_", some(40)),
    "supabase-token": token("sbp_", some(40, HEX)),
    "vault-token": token("hvs.", some(90)),
    "terraform-token": within("token ", f"{some(14)}.atlasv1.{some(67)}", "", "see .atlasv1. in the docs"),
    "pulumi-token": token("pul-", some(40, HEX)),
    "doppler-token": token("dp.pt.", some(43)),
    "grafana-token": token("glsa_", f"{some(32)}_{some(8, HEX)}"),
    "new-relic-key": token("NRAK-", some(27, string.ascii_uppercase + string.digits)),
    "sentry-token": token("sntrys_", some(100)),
    "sendgrid-key": token("SG.", f"{some(22)}.{some(43)}"),
    "mailgun-key": token("key-", some(32, HEX), "monkey-" + some(32, HEX)),
    "mailchimp-key": within("mail ", some(32, HEX) + "-us14", "", "the region is eu-us14"),
    "twilio-key": token("SK", some(32, HEX), "TASK" + some(32, HEX)),
    "atlassian-token": token("ATATT3", some(180)),
    "linear-key": token("lin_api_", some(40)),
    "notion-token": token("ntn_", some(46)),
    "figma-token": token("figd_", some(40)),
    "postman-key": token("PMAK-", f"{some(24, HEX)}-{some(34, HEX)}"),
    "airtable-token": token("pat", f"{some(14)}.{some(64, HEX)}", "pattern." + some(64, HEX)),
    "planetscale-token": token("pscale_", "tkn_" + some(43)),
    "age-secret-key": token("AGE-SECRET-KEY-1", some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
    "langfuse-key": within(
        "use ",
        f"sk-lf-{some(8, HEX)}-{some(4, HEX)}-{some(4, HEX)}-{some(4, HEX)}-{some(12, HEX)}",
        "",
        "use sk-lf-… for it",
    ),
    "elevenlabs-key": token("sk_", some(48, HEX)),
    "together-key": token("tgp_v1_", some(43)),
    "cerebras-key": token("csk-", some(48, string.ascii_lowercase + string.digits)),
    "llamacloud-key": token("llx-", some(48)),
    "pinecone-key": token("pcsk_", f"{some(6)}_{some(63)}"),
    "jina-key": token("jina_", some(60)),
    "firecrawl-key": token("fc-", some(32, HEX)),
    "e2b-key": token("e2b_", some(40, HEX)),
    "cursor-key": token("key_", some(64, HEX)),
    "aws-session-token": token("IQoJb3JpZ2lu", some(300, ALNUM + "+/")),
    "azure-client-secret": within("az login ", f"{some(3)}8Q~{some(34)}", "", "the score was 8Q~ or so"),
    "azure-signed-key": within("az ", f"{some(52)}JQQJ99{some(26)}", "", "JQQJ99 stands in keys of Azure"),
    "cloudflare-token": token("cfut_", some(48)),
    "netlify-token": token("nfp_", some(36)),
    "render-key": token("rnd_", some(32)),
    "neon-key": token("napi_", some(64, string.ascii_lowercase + string.digits)),
    "mongodb-atlas-secret": token("mdb_sa_sk_", some(40)),
    "sonar-token": token("squ_", some(40, HEX)),
    "sourcegraph-token": token("sgp_", f"{some(16, HEX)}_{some(40, HEX)}"),
    "circleci-token": token("CCIPAT_", f"{some(22)}_{some(40, HEX)}"),
    "buildkite-token": token("bkua_", some(40, HEX)),
    "posthog-key": token("phx_", some(47)),
    "dynatrace-token": token("dt0c01.", f"{some(24, BASE32)}.{some(64, BASE32)}", "see dt0c01.xxxx"),
    "tailscale-key": token("tskey-", f"auth-{some(17)}-{some(32)}", "tskey-auth-…"),
    "facebook-token": token("EAA", some(180)),
    "dropbox-token": token("sl.", "u." + some(140)),
    "brevo-key": token("xkeysib-", f"{some(64, HEX)}-{some(16)}"),
    "resend-key": token("re_", f"{some(8)}_{some(24)}", "re_compile_pattern and re_match_2"),
    "onepassword-token": token("ops_eyJ", some(250)),
    "bitbucket-token": token("ATBB", some(32)),
    "mapbox-token": token("sk.eyJ", f"{some(60)}.{some(22)}"),
    "encoded-private-key": token(
        "LS0tLS1CRUdJTiBSU0Eg", some(900), "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM"
    ),
    "jwt": within(
        "got ",
        f"eyJhbGciOiJIUzI1NiJ9.eyJ{some(60)}.{some(43)}",
        " back",
        "eyJhbGciOiJIUzI1NiJ9 is a header, eyJ begins every one of them",
    ),
    "private-key": within(
        "-----BEGIN RSA PRIVATE KEY-----",
        f"\n{_KEY_LINES}\n",
        "-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ),
    "connection-string": within(
        "postgresql://shop:", "tr0ub4dor&3", "@db.internal:5432/shop", "postgresql://user:password@localhost/shop"
    ),
    "authorization-header": within(
        'curl -H "Authorization: Basic ', some(40), '" x', 'curl -H "Authorization: Bearer $TOKEN" x'
    ),
    "bearer-token": within("it sent Bearer ", some(40), " twice", "Bearer authentication-is-required here"),
    "cookie": within("Cookie: ", f"session_id={some(32)}; theme=dark", "\n", "Cookie: theme=dark; consent=yes\n"),
    "aws-secret-key": within(
        "AWS_SECRET_ACCESS_KEY=",
        some(40, ALNUM + "/+"),
        "\n",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    ),
    "azure-key": within(
        "AccountName=shop;AccountKey=", some(86) + "==", ";EndpointSuffix=x", "AccountKey=<your-account-key>;"
    ),
    "signed-url": within("https://x.blob/a?sp=r&sig=", some(43) + "%3D", "&se=1", "https://x.blob/a?sig=..."),
    "command-line-user": within("curl -s -u shop:", "correcthorse", " https://x", "curl -u $USER:$PASSWORD https://x"),
    "netrc-password": within(
        "machine git.internal login me password ", "correcthorse", "\n", "machine x login me password <token>\n"
    ),
    "npmrc-password": within(
        "//registry/:_authToken=", "0c9e4b52-77aa-4b7b-9f11-0b21c3d4e5f6", "\n", "//registry/:_authToken=${NPM_TOKEN}\n"
    ),
    "password": within('db_password: "', "tr0ub4dor&3", '"', "password = getpass.getpass(prompt)"),
    "named-secret": within("client_secret = '", some(32), "'", "client_secret = settings.client_secret_v2"),
}
_OF_KINDS = {
    "onepassword-secret-key": "1Password secret key",
    "adobe-secret": "Adobe client secret",
    "amazon-mws-key": "Amazon MWS key",
    "artifactory-key": "Artifactory key",
    "asana-token": "Asana token",
    "authress-key": "Authress key",
    "aws-appsync-key": "AWS AppSync key",
    "aws-bedrock-short-key": "Amazon Bedrock short key",
    "braintree-token": "Braintree token",
    "canva-secret": "Canva secret",
    "clickhouse-secret": "ClickHouse Cloud secret",
    "clojars-token": "Clojars token",
    "composio-key": "Composio key",
    "contentful-token": "Contentful token",
    "defined-networking-key": "Defined Networking key",
    "discord-bot-token": "Discord bot token",
    "docker-swarm-token": "Docker Swarm token",
    "duffel-token": "Duffel token",
    "easypost-key": "EasyPost key",
    "flutterwave-key": "Flutterwave secret",
    "frameio-token": "Frame.io token",
    "gitlab-runner-token": "GitLab runner registration",
    "gocardless-token": "GoCardless token",
    "google-hmac-key": "Google HMAC key",
    "grafana-key": "Grafana key",
    "harness-token": "Harness token",
    "hubspot-token": "HubSpot token",
    "infracost-key": "Infracost key",
    "infisical-token": "Infisical token",
    "intra42-secret": "Intra42 secret",
    "launchdarkly-key": "LaunchDarkly key",
    "nats-seed": "NATS seed",
    "new-relic-insert-key": "New Relic insert key",
    "nuget-key": "NuGet key",
    "octopus-key": "Octopus key",
    "openshift-token": "OpenShift token",
    "paseto": "PASETO",
    "prefect-key": "Prefect key",
    "readme-key": "Readme key",
    "riot-key": "Riot key",
    "salesforce-session": "Salesforce session",
    "scalingo-token": "Scalingo token",
    "settlemint-token": "SettleMint token",
    "shippo-token": "Shippo token",
    "typeform-token": "Typeform token",
    "wakatime-key": "WakaTime key",
    "wallet-key": "wallet key, extended",
    "x-bearer-token": "X bearer token",
    "yandex-token": "Yandex key",
    "private-key-block": "private key, PuTTY",
    "password-hash": "htpasswd line",
    "url-token": "token before the host",
    "basic-credentials": "basic header",
    "teams-webhook": "Teams webhook",
    "zapier-webhook": "Zapier webhook",
    "sudo-password": "sudo",
    "vault-login": "Vault login",
    "secure-string": "PowerShell secure string",
    "keystore-password": "keytool",
    "openssl-password": "OpenSSL argument",
    "pgpass-line": ".pgpass line",
    "docker-auth": "Docker configuration",
    "bundler-credentials": "Sidekiq credentials",
    "sql-password": "SQL user",
    "json-web-key": "JSON web key",
    "database-password": "mysql password",
    "login-password": "sshpass",
    "archive-password": "zip password",
    "named-key": "HMAC key",
    "mnemonic": "mnemonic in a call",
    "facebook-app-token": "Facebook app token",
}
_HELD_OUT = {
    "directive-password": "settings: redis.conf",
    "element-password": "protocols: SOAP",
    "ftp-password": "protocols: FTP session",
    "mail-password": "settings: postfix",
    "signing-secret": "code: JavaScript sign",
    "wifi-password": "protocols: WiFi code",
}
_LINES = {secret.kind: secret for secret in held_out_secrets()}
_KINDS = {secret.kind: secret for secret in secrets()}

_GIVEN = {
    "twitch-token": ("connect «»", f"oauth:{some(30, string.ascii_lowercase + string.digits)}", "connect oauth:device"),
    "typed-password": ("page.getByLabel('Password').fill('«»')", "Otter!9572Q", "page.getByLabel('Password').fill('')"),
    "wordpress-key": (
        "define('NONCE_SALT', '«»');",
        f"{some(30)} ;{some(30)}",
        "define('WP_DEBUG_LOG', 'wp-errors.log');",
    ),
    "app-password": ("EMAIL_PASSWORD = '«»'", "rthl zngf reqr ujzh", "password: 'this must have four words'"),
    "url-key": ("GET /v1/tiles?key=«»&z=3", some(39), "GET /v1/tiles?key=name-of-the-first-column"),
    "one-time-link": ("https://app.test/reset-password/«»", some(43), "https://app.test/reset-password/confirmation"),
    "saml-assertion": ("SAMLResponse=«»", some(120), "SAMLResponse=missing"),
    "unseal-key": ("Unseal Key 1: «»", some(44), "Unseal Key 1: unavailable"),
    "printed-secret": ("$ cat config/master.key\n«»\n", some(32), "$ cat config/master.key\nconfig.log\n"),
    "piped-secret": (
        "echo '«»' | vercel env add STRIPE_SECRET production",
        some(32),
        "echo 'staging' | vercel env add NAME",
    ),
}

EXAMPLES: dict[str, Example] = (
    _WRITTEN
    | {rule: Example(text.replace("«»", secret), secret, harmless) for rule, (text, secret, harmless) in _GIVEN.items()}
    | {rule: Example(_KINDS[kind].text, _KINDS[kind].secret, blank(kind)) for rule, kind in _OF_KINDS.items()}
    | {
        rule: Example(line.text, line.secret, line.text.replace(line.secret, "<secret>"))
        for rule, line in ((rule, _LINES[kind]) for rule, kind in _HELD_OUT.items())
    }
)
"""Rule -> what it finds and what it leaves."""

PLACEHOLDERS = (
    "YOUR_API_KEY",
    "your-api-key-here-2",
    "xxxxxxxxxxxxxxxxxxxx",
    "<token>",
    "${VAR}",
    "$API_KEY_2",
    "{{ secrets.API_KEY_2 }}",
    "%API_KEY%",
    "***",
    "****************",
    "…",
    "...",
    "[REDACTED]",
    "process.env.API_KEY_2",
    'os.environ["API_KEY_2"]',
    "os.getenv('API_KEY_2')",
    "changeme123456",
    "00000000000000000000",
    "example-key-123456",
    "None",
    "undefined",
)
"""What is where secrets would be."""
