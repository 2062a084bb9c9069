"""What secrets look like, kind by kind, and what only looks like one; all of it made at run time of a fixed seed.

A row shows the shape of a secret between `«` and `»`, in the text that it needs around itself. In a shape, `⟨h:32⟩`
means 32 random characters of the alphabet `h` (`ALPHABETS`), `⟨maker⟩` for what a function of `MAKERS` makes, so
no file holds anything that looks like a secret. The kinds are those that issuers document and that other scanners
have rules for, and those that command lines, settings and protocols bring along.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

SEED = 20261123

_ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "a": _ALNUM,
    "b": _ALNUM + "_-",
    "c": string.ascii_letters,
    "d": string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "3": string.ascii_uppercase + "234567",
    "5": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "q": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
    "s": _ALNUM + "+/",
    "t": _ALNUM + "./",
    ".": _ALNUM + "._",
}

_PIECE = re.compile(r"⟨([\w.]):(\d+)⟩|⟨(\w{3,20})⟩")


class Secret(NamedTuple):
    """One secret, and the text that it needs around itself."""

    kind: str
    form: str
    """`token` is known by itself, `named` by the name before it, `snippet` by the lines around it."""
    text: str
    secret: str


TOKENS = {
    "1Password secret key": "«A3-⟨u:6⟩-⟨u:11⟩-⟨u:5⟩-⟨u:5⟩-⟨u:5⟩»",
    "1Password service account": "«ops_eyJ⟨b:260⟩»",
    "Adobe client secret": "«p8e-⟨a:32⟩»",
    "age identity": "«AGE-SECRET-KEY-1⟨bech⟩»",
    "Airtable personal token": "«pat⟨a:14⟩.⟨h:64⟩»",
    "Alibaba access key": "«LTAI⟨a:20⟩»",
    "Amazon MWS key": "«amzn.mws.⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "Anthropic key": "«sk-ant-api03-⟨b:93⟩AA»",
    "Anthropic admin key": "«sk-ant-admin01-⟨b:93⟩AA»",
    "Anthropic OAuth token": "«sk-ant-oat01-⟨b:93⟩AA»",
    "Artifactory key": "«AKCp⟨a:69⟩»",
    "Artifactory reference token": "«cmVmd⟨a:59⟩»",
    "Asana token": "«2/⟨d:16⟩/⟨d:16⟩:⟨h:32⟩»",
    "Atlassian token": "«ATATT3xFfGF0⟨b:180⟩»",
    "Authress key": "«sc_⟨l:15⟩.⟨l:5⟩.acc_⟨l:16⟩.⟨s:60⟩»",
    "AWS access key": "«AKIA⟨3:16⟩»",
    "AWS temporary key": "«ASIA⟨3:16⟩»",
    "AWS session token": "«IQoJb3JpZ2luX2Vj⟨s:300⟩»",
    "AWS AppSync key": "«da2-⟨l:26⟩»",
    "Amazon Bedrock key": "«ABSKQmVkcm9ja0FQSUtleS⟨s:109⟩=»",
    "Amazon Bedrock short key": "«bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t⟨s:120⟩»",
    "Azure client secret": "«⟨a:3⟩8Q~⟨b:34⟩»",
    "Azure DevOps token": "«⟨a:76⟩AZDO⟨a:4⟩»",
    "Azure service key": "«⟨a:52⟩JQQJ99⟨a:26⟩»",
    "Bitbucket app password": "«ATBB⟨a:32⟩»",
    "Braintree token": "«access_token$production$⟨l:16⟩$⟨h:32⟩»",
    "Brevo key": "«xkeysib-⟨h:64⟩-⟨a:16⟩»",
    "Buildkite token": "«bkua_⟨h:40⟩»",
    "Canva secret": "«cnvca⟨a:40⟩»",
    "Cerebras key": "«csk-⟨l:48⟩»",
    "CircleCI token": "«CCIPAT_⟨a:22⟩_⟨h:40⟩»",
    "ClickHouse Cloud secret": "«4b1d⟨a:38⟩»",
    "Clojars token": "«CLOJARS_⟨h:60⟩»",
    "Cloudflare token": "«cfut_⟨b:44⟩»",
    "Cloudflare origin key": "«v1.0-⟨h:24⟩-⟨h:146⟩»",
    "Composio key": "«ak_⟨b:20⟩»",
    "Contentful token": "«CFPAT-⟨b:43⟩»",
    "Cursor key": "«crsr_⟨h:64⟩»",
    "Databricks token": "«dapi⟨h:32⟩»",
    "Defined Networking key": "«dnkey-⟨b:26⟩-⟨b:52⟩»",
    "DigitalOcean token": "«dop_v1_⟨h:64⟩»",
    "DigitalOcean refresh token": "«dor_v1_⟨h:64⟩»",
    "Discord bot token": "«⟨discord⟩»",
    "Docker token": "«dckr_pat_⟨b:27⟩»",
    "Docker Swarm token": "«SWMTKN-1-⟨l:50⟩-⟨l:25⟩»",
    "Docker Swarm unlock key": "«SWMKEY-1-⟨s:43⟩»",
    "Doppler token": "«dp.pt.⟨a:43⟩»",
    "Dropbox token": "«sl.u.⟨b:140⟩»",
    "Duffel token": "«duffel_live_⟨b:43⟩»",
    "Dynatrace token": "«dt0c01.⟨3:24⟩.⟨3:64⟩»",
    "E2B key": "«e2b_⟨h:40⟩»",
    "EasyPost key": "«EZAK⟨a:54⟩»",
    "ElevenLabs key": "«sk_⟨h:48⟩»",
    "Facebook app token": "⟨d:16⟩|«⟨b:27⟩»",
    "Facebook page token": "«EAAM⟨a:180⟩»",
    "Prefect key": "«pnu_⟨l:36⟩»",
    "Figma token": "«figd_⟨b:40⟩»",
    "Firecrawl key": "«fc-⟨h:32⟩»",
    "Fireworks key": "«fw_⟨a:22⟩»",
    "Flutterwave secret": "«FLWSECK-⟨h:32⟩-X»",
    "Fly.io token": "«FlyV1 fm2_⟨s:120⟩»",
    "Frame.io token": "«fio-u-⟨b:64⟩»",
    "GitHub token": "«ghp_⟨a:36⟩»",
    "GitHub OAuth token": "«gho_⟨a:36⟩»",
    "GitHub app token": "«ghs_⟨a:36⟩»",
    "GitHub refresh token": "«ghr_⟨a:76⟩»",
    "GitHub fine-grained token": "«github_pat_⟨a:22⟩_⟨a:59⟩»",
    "GitLab token": "«glpat-⟨b:20⟩»",
    "GitLab routable token": "«glpat-⟨b:27⟩.⟨l:2⟩.⟨l:9⟩»",
    "GitLab deploy token": "«gldt-⟨b:20⟩»",
    "GitLab runner token": "«glrt-⟨b:20⟩»",
    "GitLab runner registration": "«GR1348941⟨b:20⟩»",
    "GitLab trigger token": "«glptt-⟨h:40⟩»",
    "GitLab incoming mail token": "«glimt-⟨b:25⟩»",
    "GoCardless token": "«live_⟨b:40⟩»",
    "Google API key": "«AIza⟨b:35⟩»",
    "Google HMAC key": "«GOOG1E⟨u:56⟩»",
    "Google OAuth secret": "«GOCSPX-⟨b:28⟩»",
    "Google OAuth token": "«ya29.⟨b:120⟩»",
    "Google refresh token": "«1//0⟨b:60⟩»",
    "Grafana token": "«glsa_⟨a:32⟩_⟨h:8⟩»",
    "Grafana Cloud token": "«glc_⟨s:120⟩»",
    "Grafana key": "«eyJrIjoi⟨a:72⟩»",
    "Groq key": "«gsk_⟨a:52⟩»",
    "Harness token": "«pat.⟨b:22⟩.⟨h:24⟩.⟨a:20⟩»",
    "Heroku key": "«HRKU-AA⟨b:58⟩»",
    "HubSpot token": "«pat-na1-⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "Hugging Face token": "«hf_⟨c:34⟩»",
    "Infracost key": "«ico-⟨a:32⟩»",
    "Intra42 secret": "«s-s4t2ud-⟨h:64⟩»",
    "Jina key": "«jina_⟨b:60⟩»",
    "JSON web token": "«⟨jwt⟩»",
    "JSON web token, without its signature": "«eyJhbGciOiJIUzI1NiJ9.eyJ⟨b:80⟩»",
    "JSON web token, encrypted": "«⟨jwe⟩»",
    "LangSmith key": "«lsv2_pt_⟨h:32⟩_⟨h:10⟩»",
    "Langfuse key": "«sk-lf-⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "LaunchDarkly key": "«sdk-⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "Linear key": "«lin_api_⟨a:40⟩»",
    "LlamaCloud key": "«llx-⟨a:48⟩»",
    "Mailchimp key": "«⟨h:32⟩-us14»",
    "Mailgun key": "«key-⟨h:32⟩»",
    "Mapbox token": "«sk.eyJ⟨b:60⟩.⟨b:22⟩»",
    "Infisical token": "«st.⟨h:24⟩.⟨h:32⟩.⟨h:32⟩»",
    "MongoDB Atlas secret": "«mdb_sa_sk_⟨b:40⟩»",
    "NATS seed": "«SU⟨3:56⟩»",
    "Neon key": "«napi_⟨l:64⟩»",
    "Netlify token": "«nfp_⟨a:36⟩»",
    "New Relic key": "«NRAK-⟨u:27⟩»",
    "New Relic insert key": "«NRII-⟨b:32⟩»",
    "Notion token": "«ntn_⟨a:46⟩»",
    "Notion secret": "«secret_⟨a:43⟩»",
    "npm token": "«npm_⟨a:36⟩»",
    "NuGet key": "«oy2⟨l:43⟩»",
    "NVIDIA key": "«nvapi-⟨b:64⟩»",
    "Octopus key": "«API-⟨u:26⟩»",
    "PASETO": "«v2.local.⟨b:120⟩»",
    "OpenAI key": "«sk-⟨a:20⟩T3BlbkFJ⟨a:20⟩»",
    "OpenAI project key": "«sk-proj-⟨b:74⟩T3BlbkFJ⟨b:74⟩»",
    "OpenAI service key": "«sk-svcacct-⟨b:74⟩T3BlbkFJ⟨b:58⟩»",
    "OpenRouter key": "«sk-or-v1-⟨h:64⟩»",
    "OpenShift token": "«sha256~⟨b:43⟩»",
    "Paystack key": "«sk_live_⟨h:40⟩»",
    "Perplexity key": "«pplx-⟨a:48⟩»",
    "Pinecone key": "«pcsk_⟨a:6⟩_⟨a:63⟩»",
    "PlanetScale password": "«pscale_pw_⟨b:43⟩»",
    "PlanetScale token": "«pscale_tkn_⟨b:43⟩»",
    "PostHog key": "«phx_⟨a:47⟩»",
    "Postman key": "«PMAK-⟨h:24⟩-⟨h:34⟩»",
    "private key": "⟨pem⟩",
    "private key, OpenSSH": "⟨openssh⟩",
    "private key, PGP": "⟨pgp⟩",
    "private key, PuTTY": "⟨putty⟩",
    "private key, encoded": "«LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ⟨s:600⟩==»",
    "Pulumi token": "«pul-⟨h:40⟩»",
    "PyPI token": "«pypi-AgEIcHlwaS5vcmc⟨b:150⟩»",
    "Readme key": "«rdme_⟨l:70⟩»",
    "Render key": "«rnd_⟨a:32⟩»",
    "Replicate token": "«r8_⟨a:37⟩»",
    "Resend key": "«re_⟨a:8⟩_⟨a:24⟩»",
    "Riot key": "«RGAPI-⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "RubyGems key": "«rubygems_⟨h:48⟩»",
    "Salesforce session": "«00D⟨a:12⟩!⟨.:96⟩»",
    "Scalingo token": "«tk-us-⟨b:48⟩»",
    "SendGrid key": "«SG.⟨b:22⟩.⟨b:43⟩»",
    "Sentry organization token": "«sntrys_⟨s:110⟩»",
    "Sentry user token": "«sntryu_⟨h:64⟩»",
    "SettleMint token": "«sm_pat_⟨a:16⟩»",
    "Shippo token": "«shippo_live_⟨h:40⟩»",
    "Shopify token": "«shpat_⟨h:32⟩»",
    "Slack bot token": "«xoxb-⟨d:12⟩-⟨d:13⟩-⟨a:24⟩»",
    "Slack user token": "«xoxp-⟨d:12⟩-⟨d:12⟩-⟨d:13⟩-⟨h:32⟩»",
    "Slack configuration token": "«xoxe.xoxp-1-⟨a:160⟩»",
    "Slack app token": "«xapp-1-A⟨u:10⟩-⟨d:13⟩-⟨h:64⟩»",
    "SonarQube token": "«squ_⟨h:40⟩»",
    "Sourcegraph token": "«sgp_⟨h:16⟩_⟨h:40⟩»",
    "Square token": "«sq0atp-⟨b:22⟩»",
    "Square production token": "«EAAA⟨b:60⟩»",
    "Square secret": "«sq0csp-⟨b:43⟩»",
    "Stripe key": "«sk_live_⟨a:99⟩»",
    "Stripe restricted key": "«rk_live_⟨a:99⟩»",
    "Stripe webhook secret": "«whsec_⟨a:32⟩»",
    "Supabase token": "«sbp_⟨h:40⟩»",
    "Supabase secret key": "«sb_secret_⟨b:31⟩»",
    "Tailscale key": "«tskey-auth-⟨a:17⟩-⟨a:32⟩»",
    "Tavily key": "«tvly-dev-⟨a:32⟩»",
    "Telegram bot token": "«⟨d:10⟩:AA⟨b:33⟩»",
    "Terraform token": "«⟨a:14⟩.atlasv1.⟨b:67⟩»",
    "Together key": "«tgp_v1_⟨b:43⟩»",
    "Twilio key": "«SK⟨h:32⟩»",
    "Typeform token": "«tfp_⟨b:59⟩»",
    "Vault token": "«hvs.⟨b:90⟩»",
    "Vault batch token": "«hvb.⟨b:140⟩»",
    "Vercel token": "«vcp_⟨a:40⟩»",
    "WakaTime key": "«waka_⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "wallet key, extended": "«xprv⟨5:107⟩»",
    "X bearer token": "«AAAAAAAAAAAAAAAAAAAAA⟨a:24⟩%2B⟨a:40⟩%3D⟨a:18⟩»",
    "xAI key": "«xai-⟨a:80⟩»",
    "Yandex key": "«AQVN⟨b:36⟩»",
    "Yandex OAuth token": "«y0_⟨b:55⟩»",
}
"""Secrets that are known by themselves."""

NAMED = {
    "Adafruit key": "ADAFRUIT_IO_KEY=«⟨b:32⟩»",
    "Algolia key": "ALGOLIA_ADMIN_API_KEY=«⟨h:32⟩»",
    "Alibaba secret": "ALIBABA_CLOUD_ACCESS_KEY_SECRET=«⟨a:30⟩»",
    "AWS secret key": "AWS_SECRET_ACCESS_KEY=«⟨s:40⟩»",
    "Azure storage key": "AZURE_STORAGE_ACCOUNT_KEY=«⟨s:86⟩==»",
    "Beamer token": "BEAMER_API_TOKEN=«b_⟨b:44⟩»",
    "Bittrex secret": "BITTREX_SECRET_KEY=«⟨l:32⟩»",
    "client secret": "CLIENT_SECRET=«⟨b:40⟩»",
    "client secret, camel case": "clientSecret=«⟨a:32⟩»",
    "Cloudant password": "CLOUDANT_PASSWORD=«⟨h:64⟩»",
    "Cloudflare global key": "CLOUDFLARE_API_KEY=«⟨h:37⟩»",
    "Codecov token": "CODECOV_TOKEN=«⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "Cohere key": "COHERE_API_KEY=«⟨a:40⟩»",
    "Coinbase secret": "COINBASE_ACCESS_TOKEN=«⟨b:64⟩»",
    "Confluent secret": "CONFLUENT_SECRET_KEY=«⟨s:64⟩»",
    "Datadog key": "DD_API_KEY=«⟨h:32⟩»",
    "Datadog application key": "DATADOG_APP_KEY=«⟨h:40⟩»",
    "database password": "DB_PASS=«⟨password⟩»",
    "database password of letters": "DB_PASS=«⟨c:24⟩»",
    "master key of letters": "MASTER_KEY=«⟨c:24⟩»",
    "secret of letters": "WEBHOOK_SECRET=«⟨c:24⟩»",
    "key that is called so in short": "STRIPE_SK=«⟨a:24⟩»",
    "password that is called so in short": "ADMIN_PW=«⟨a:18⟩»",
    "database password, long name": "POSTGRES_PASSWORD=«⟨password⟩»",
    "Discord client secret": "DISCORD_CLIENT_SECRET=«⟨b:32⟩»",
    "Django secret key": "DJANGO_SECRET_KEY=«⟨django⟩»",
    "Drone token": "DRONE_TOKEN=«⟨a:32⟩»",
    "encryption key": "ENCRYPTION_KEY=«⟨s:43⟩=»",
    "Ethereum key": "PRIVATE_KEY=«0x⟨h:64⟩»",
    "Etsy secret": "ETSY_SHARED_SECRET=«⟨l:10⟩»",
    "Facebook app secret": "FACEBOOK_APP_SECRET=«⟨h:32⟩»",
    "Fastly token": "FASTLY_API_TOKEN=«⟨b:32⟩»",
    "Finnhub token": "FINNHUB_API_KEY=«⟨l:20⟩»",
    "Flickr secret": "FLICKR_API_SECRET=«⟨h:16⟩»",
    "FreshBooks secret": "FRESHBOOKS_CLIENT_SECRET=«⟨h:64⟩»",
    "generic token": "ACCESS_TOKEN=«⟨a:40⟩»",
    "generic token, camel case": "accessToken=«⟨b:40⟩»",
    "HMAC key": "HMAC_KEY=«⟨h:64⟩»",
    "IBM Cloud key": "IBMCLOUD_API_KEY=«⟨b:44⟩»",
    "Intercom token": "INTERCOM_ACCESS_TOKEN=«⟨s:59⟩=»",
    "JFrog token": "JFROG_IDENTITY_TOKEN=«⟨a:64⟩»",
    "JWT secret": "JWT_SECRET=«⟨b:43⟩»",
    "Kraken secret": "KRAKEN_PRIVATE_KEY=«⟨s:86⟩==»",
    "Kucoin secret": "KUCOIN_SECRET=«⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "LinkedIn secret": "LINKEDIN_CLIENT_SECRET=«⟨a:16⟩»",
    "Looker secret": "LOOKER_CLIENT_SECRET=«⟨l:24⟩»",
    "master key": "MASTER_KEY=«⟨h:32⟩»",
    "Rails master key": "RAILS_MASTER_KEY=«⟨h:32⟩»",
    "Rails key base": "SECRET_KEY_BASE=«⟨h:128⟩»",
    "Mattermost token": "MATTERMOST_TOKEN=«⟨l:26⟩»",
    "MaxMind key": "MAXMIND_LICENSE_KEY=«⟨a:6⟩_⟨a:29⟩_mmk»",
    "MessageBird key": "MESSAGEBIRD_API_KEY=«⟨a:25⟩»",
    "Mistral key": "MISTRAL_API_KEY=«⟨a:32⟩»",
    "mnemonic": "MNEMONIC=«⟨mnemonic⟩»",
    "MySQL password": "MYSQL_PWD=«⟨password⟩»",
    "New York Times key": "NYTIMES_API_KEY=«⟨a:32⟩»",
    "Okta token": "OKTA_API_TOKEN=«00⟨b:40⟩»",
    "Open Exchange key": "EXCHANGE_APP_KEY=«⟨h:32⟩»",
    "pass": "PASS=«⟨password⟩»",
    "passphrase": "GPG_PASSPHRASE=«⟨password⟩»",
    "password": "PASSWORD=«⟨password⟩»",
    "password, camel case": "dbPassword=«⟨password⟩»",
    "pgpass variable": "PGPASSWORD=«⟨password⟩»",
    "Plaid secret": "PLAID_SECRET=«⟨h:30⟩»",
    "RapidAPI key": "RAPIDAPI_KEY=«⟨a:50⟩»",
    "Redis password": "REDIS_PASSWORD=«⟨password⟩»",
    "Sendbird token": "SENDBIRD_API_TOKEN=«⟨h:40⟩»",
    "session secret": "SESSION_SECRET=«⟨b:48⟩»",
    "Sidekiq credentials": "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=«⟨h:8⟩:⟨h:8⟩»",
    "signing key": "SIGNING_KEY=«⟨s:44⟩»",
    "SMTP password": "SMTP_PASS=«⟨password⟩»",
    "Snyk token": "SNYK_TOKEN=«⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "Sumo Logic key": "SUMO_ACCESS_KEY=«⟨a:64⟩»",
    "Travis token": "TRAVIS_TOKEN=«⟨a:22⟩»",
    "Twilio auth token": "TWILIO_AUTH_TOKEN=«⟨h:32⟩»",
    "Twitch secret": "TWITCH_CLIENT_SECRET=«⟨l:30⟩»",
    "Twitter secret": "TWITTER_API_SECRET=«⟨a:50⟩»",
    "user password": "userPassword=«⟨password⟩»",
    "webhook secret": "WEBHOOK_SECRET=«⟨h:40⟩»",
    "WiFi password": "wifi_password=«⟨password⟩»",
    "Zendesk key": "ZENDESK_SECRET_KEY=«⟨h:40⟩»",
}
"""Secrets that are known by their name."""

SNIPPETS = {
    "Ansible variable": "ansible-playbook site.yml -e 'db_password=«⟨password⟩»'",
    "AWS configure": "aws configure set aws_secret_access_key «⟨s:40⟩»",
    "Azure connection string": "Protocol=https;AccountName=shop;AccountKey=«⟨s:86⟩==»;EndpointSuffix=core",
    "Azure login": "az login --service-principal -u 0b21c3d4 -p «⟨b:34⟩» --tenant shop",
    "Azure service bus": "Endpoint=sb://shop.servicebus/;SharedAccessKeyName=send;SharedAccessKey=«⟨s:43⟩=»",
    "Azure signed address": "https://shop.blob/backups/a.tar?sv=2024-11-04&sp=r&sig=«⟨s:43⟩%3D»",
    "basic header": "Authorization: Basic «⟨basic⟩»",
    "bearer header": "curl -H 'Authorization: Bearer «⟨b:40⟩»' https://api.internal/v1",
    "connection string": "postgresql://shop:«⟨urlword⟩»@db.internal:5432/shop",
    "connection string, Redis": "redis://:«⟨urlword⟩»@cache.internal:6379/0",
    "connection string, AMQP": "amqp://shop:«⟨c:14⟩»@queue.internal/shop",
    "connection string, ADO.NET": "Server=db;Database=shop;User Id=sa;Password=«⟨password⟩»;Encrypt=yes",
    "connection string, JDBC": "jdbc:mysql://db/shop?user=shop&password=«⟨urlword⟩»&useSSL=true",
    "cookie header": "Cookie: session_id=«⟨a:32⟩»; theme=dark",
    "cookie header in JSON": '{"headers": {"cookie": "sid=«⟨b:43⟩»; theme=dark"}}',
    "cookie that is set": '"set-cookie": ["sid=«⟨b:43⟩»; Path=/; HttpOnly"]',
    "curl user": "curl -u shop:«⟨urlword⟩» https://api.internal/v1/orders",
    "curl user, long option": "curl --user shop:«⟨urlword⟩» https://api.internal/v1/orders",
    "curl user behind others": "curl -sS -X POST --user 'shop:«⟨urlword⟩»' https://api.internal/v1/orders",
    "curl user, quoted password": "curl --user shop:'«⟨urlword⟩»' -X PATCH https://api.internal/v1/orders",
    "curl user, one word": "curl -ushop:«⟨urlword⟩» https://api.internal/v1/orders",
    "C# constant": 'private const string ApiKey = "«⟨a:32⟩»";',
    "Docker configuration": '{"auths": {"registry.internal": {"auth": "«⟨basic⟩»"}}}',
    "docker login": "docker login -u shop -p «⟨urlword⟩» registry.internal",
    "Dockerfile variable": "ENV SHOP_API_KEY «⟨a:40⟩»",
    "ECS definition": '{"environment": [{"name": "STRIPE_API_KEY", "value": "«⟨a:40⟩»"}]}',
    "fish variable": "set -gx GITEA_TOKEN «⟨h:40⟩»",
    "form with an encoded name": "POST /login user%5Bemail%5D=me&user%5Bpassword%5D=«⟨urlword⟩»",
    "form, encoded as a whole": "body=login%3Dme%26password%3D«⟨urlword⟩»%26next%3D%2F",
    "ftp login": "lftp -u shop,«⟨urlword⟩» ftp.internal",
    "GitHub secret": "gh secret set DEPLOY_TOKEN --body «⟨a:40⟩»",
    "Go constant": 'const apiKey string = "«⟨a:40⟩»"',
    "Go variable": 'apiSecret := "«⟨a:40⟩»"',
    "header of a service": "X-Api-Key: «⟨h:40⟩»",
    "header of GitLab": "PRIVATE-TOKEN: «⟨b:24⟩»",
    "htpasswd line": "shop:«$apr1$⟨t:8⟩$⟨t:22⟩»",
    "htpasswd line, bcrypt": "shop:«$2y$10$⟨t:53⟩»",
    "Java field": 'private static final String SECRET_KEY = "«⟨a:40⟩»";',
    "JSON, name and value": '{"name":"API_KEY","value":"«⟨a:32⟩»"}',
    "JSON, key and value": '[{"key": "db_password", "value": "«⟨password⟩»"}]',
    "JSON web key": '{"kty":"EC","crv":"P-256","x":"⟨b:43⟩","y":"⟨b:43⟩","d":"«⟨b:43⟩»"}',
    "keytool": "keytool -list -keystore shop.jks -storepass «⟨urlword⟩»",
    "Kotlin value": 'val apiToken: String = "«⟨a:40⟩»"',
    "Kubernetes literal": "kubectl create secret generic shop --from-literal=password=«⟨urlword⟩»",
    "Kubernetes secret": "kind: Secret\nmetadata:\n  name: shop\ndata:\n  password: «⟨b64password⟩»\n",
    "Kubernetes variable": "env:\n  - name: DB_PASSWORD\n    value: «⟨urlword⟩»\n",
    "LDAP search": "ldapsearch -x -D cn=admin,dc=shop -w «⟨urlword⟩» -b dc=shop",
    "Maven server": "<server><id>shop</id><username>me</username><password>«⟨urlword⟩»</password></server>",
    "mnemonic in an output": "Your seed phrase, write it down:\n\n«⟨mnemonic⟩»\n",
    "mnemonic in a call": 'ethers.Wallet.fromMnemonic("«⟨mnemonic⟩»")',
    "MongoDB shell": "mongosh --host db -u shop -p «⟨urlword⟩» shop",
    "mysql password": "mysql -u root -p«⟨urlword⟩» shop < dump.sql",
    "mysqldump password": "mysqldump -h db -ushop -p'«⟨urlword⟩»' shop",
    ".netrc line": "machine git.internal login me password «⟨urlword⟩»",
    ".npmrc token": "//registry.internal/:_authToken=«⟨h:8⟩-⟨h:4⟩-⟨h:4⟩-⟨h:4⟩-⟨h:12⟩»",
    "NuGet configuration": '<add key="ClearTextPassword" value="«⟨password⟩»" />',
    "OpenSSL argument": "openssl rsa -in key.pem -passin pass:«⟨urlword⟩» -out plain.pem",
    "OpenVPN static key": "⟨openvpn⟩",
    ".pgpass line": "db.internal:5432:shop:shop:«⟨urlword⟩»",
    "PHP array": "'password' => '«⟨password⟩»',",
    "PowerShell secure string": "ConvertTo-SecureString '«⟨urlword⟩»' -AsPlainText -Force",
    "PowerShell variable": '$env:SHOP_TOKEN = "«⟨a:40⟩»"',
    "property list": "<key>apiKey</key>\n<string>«⟨a:40⟩»</string>",
    "Python annotation": 'API_TOKEN: Final[str] = "«⟨a:40⟩»"',
    "Python dictionary": "config = {'secret_key': '«⟨b:43⟩»'}",
    "Redis shell": "redis-cli -h cache -a «⟨urlword⟩» ping",
    "Rust constant": 'const API_KEY: &str = "«⟨a:40⟩»";',
    "setx": "setx SHOP_API_KEY «⟨a:40⟩»",
    "shadow line": "shop:«$6$⟨t:16⟩$⟨t:86⟩»:19875:0:99999:7:::",
    "shadow line, yescrypt": "shop:«$y$j9T$⟨t:22⟩$⟨t:43⟩»:19875:0:99999:7:::",
    "Slack webhook": "https://hooks.slack.com/services/«T⟨u:8⟩/B⟨u:8⟩/⟨a:24⟩»",
    "Discord webhook": "https://discord.com/api/webhooks/«⟨d:18⟩/⟨b:68⟩»",
    "Teams webhook": "https://shop.webhook.office.com/webhookb2/«⟨uuid⟩@⟨uuid⟩/IncomingWebhook/⟨h:32⟩/⟨uuid⟩»",
    "Zapier webhook": "https://hooks.zapier.com/hooks/catch/«⟨d:7⟩/⟨l:7⟩»/",
    "SQL role": "CREATE ROLE shop LOGIN PASSWORD '«⟨password⟩»';",
    "SQL user": "CREATE USER 'shop'@'%' IDENTIFIED BY '«⟨password⟩»';",
    "SQL user, with a plugin": "ALTER USER root IDENTIFIED WITH mysql_native_password BY '«⟨password⟩»';",
    "sshpass": "sshpass -p «⟨urlword⟩» ssh root@10.0.0.7",
    "sshpass, one word": "sshpass -p'«⟨urlword⟩»' scp a.tar root@10.0.0.7:",
    "sudo": "echo «⟨urlword⟩» | sudo -S apt-get update",
    "SwaggerUI authorization": '{"Authorization": "ApiKey «⟨s:40⟩»"}',
    "Swift property": 'static let apiKey: String? = "«⟨a:40⟩»"',
    "Terraform variable": 'variable "x" {}\ndb_password = "«⟨password⟩»"',
    "token before the host": "git clone https://«⟨h:40⟩»@git.internal/shop.git",
    "token before a name": "git clone https://«⟨h:40⟩»:x-oauth-basic@git.internal/shop.git",
    "token behind a name": "git clone https://oauth2:«⟨b:26⟩»@git.internal/shop.git",
    "TypeScript constant": 'const apiKey: string = "«⟨a:40⟩»";',
    "TypeScript property": 'private readonly clientSecret: string = "«⟨b:40⟩»";',
    "Vault login": "vault login «s.⟨a:24⟩»",
    "wget password": "wget --user=me --password=«⟨urlword⟩» https://files.internal/a.tar",
    "WireGuard key": "[Interface]\nPrivateKey = «⟨s:42⟩A=»\nAddress = 10.0.0.2/24",
    "XML attribute": '<connection user="me" password="«⟨password⟩»"/>',
    "Windows registry": "reg add HKCU\\Shop /v Password /t REG_SZ /d «⟨urlword⟩»",
    "Lua long string": "local api_key = [[«⟨a:40⟩»]]",
    "Python string with fields": 'token = f"«⟨a:40⟩»"',
    "provider's echo of a key": "Incorrect API key provided: «⟨a:40⟩»",
    "password in German": "Passwort: «⟨urlword⟩»",
    "XML element of letters": "<password>«⟨c:24⟩»</password>",
    "PHP constant of letters": "define('DB_PASSWORD', '«⟨c:24⟩»');",
    "option of letters": "mysqlsh --password=«⟨c:24⟩» shop",
    ".pgpass line of letters": "db.internal:5432:shop:shop:«⟨c:24⟩»",
    "YAML": "database:\n  user: shop\n  password: «⟨urlword⟩»\n",
    "zip password": "zip -r -P «⟨urlword⟩» backup.zip data",
}
"""Secrets that are known by the lines around them."""


def secrets(seed: int = SEED) -> Iterator[Secret]:
    """A secret of every kind."""
    for form, table in (("token", TOKENS), ("named", NAMED), ("snippet", SNIPPETS)):
        for kind, row in table.items():
            # Of its own seed each, so that a new row changes no other.
            made = fill(row, random.Random(f"{seed} {kind}"))
            before, _, rest = made.partition("«")
            secret, _, after = rest.partition("»")
            yield Secret(kind, form, before + secret + after, secret)


def blank(kind: str) -> str:
    """The text of a kind with a placeholder in the place of its secret."""
    if kind in TOKENS and "«" in TOKENS[kind]:
        return _PIECE.sub(lambda match: "x" * int(match[2] or 12), TOKENS[kind]).replace("«", "").replace("»", "")
    secret = next(each for each in secrets() if each.kind == kind)
    return secret.text.replace(secret.secret, "<secret>")


def fill(row: str, dice: random.Random) -> str:
    def made_of(match: re.Match[str]) -> str:
        if match[3] is not None:
            return MAKERS[match[3]](dice)
        letters = ALPHABETS[match[1]]
        made = dice.choices(letters, k=int(match[2]))
        return "".join(made)

    return _PIECE.sub(made_of, row)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _password(dice: random.Random) -> str:
    """A password as a person or a generator makes it: words with digits in their midst, or mixed characters."""
    if dice.random() < 0.5:
        words = dice.sample(("battery", "Correct", "horse", "Staple", "garden", "Winter", "troub4dor"), 2)
        return f"{words[0]}{dice.randint(10, 9999)}{dice.choice('!?$%*')}{words[1]}"
    return "".join(dice.choices(_ALNUM + "!#%*+-=?@^_~", k=14)) + str(dice.randint(0, 9))


def _urlword(dice: random.Random) -> str:
    """A password that needs no quotes in a shell."""
    return "".join(dice.choices(_ALNUM, k=13)) + str(dice.randint(0, 9))


def _basic(dice: random.Random) -> str:
    return base64.b64encode(f"shop:{_urlword(dice)}".encode()).decode()


def _lines(dice: random.Random, letters: str, count: int = 8) -> str:
    return "\n".join("".join(dice.choices(letters, k=64)) for _ in range(count))


def _pem(kind: str) -> Callable[[random.Random], str]:
    def make(dice: random.Random) -> str:
        dashes = "-" * 5
        return f"{dashes}BEGIN {kind}{dashes}\n«{_lines(dice, ALPHABETS['s'])}»\n{dashes}END {kind}{dashes}"

    return make


def _putty(dice: random.Random) -> str:
    head = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: shop\nPublic-Lines: 2\n"
    public = _lines(dice, ALPHABETS["s"], 2)
    private = _lines(dice, ALPHABETS["s"], 3)
    return f"{head}{public}\nPrivate-Lines: 3\n«{private}»\nPrivate-MAC: {dice.randbytes(32).hex()}"


def _openvpn(dice: random.Random) -> str:
    lines = "\n".join(dice.randbytes(16).hex() for _ in range(16))
    return f"-----BEGIN OpenVPN Static key V1-----\n«{lines}»\n-----END OpenVPN Static key V1-----"


def _jwt(dice: random.Random) -> str:
    head, body = ({"alg": "HS256", "typ": "JWT"}, {"sub": str(dice.random()), "iat": 1760000000})
    return ".".join([*(_base64(json.dumps(part).encode()) for part in (head, body)), _base64(dice.randbytes(32))])


def _jwe(dice: random.Random) -> str:
    head = _base64(json.dumps({"alg": "RSA-OAEP-256", "enc": "A256GCM"}).encode())
    return ".".join([head, *(_base64(dice.randbytes(size)) for size in (256, 12, 180, 16))])


def _discord(dice: random.Random) -> str:
    user = _base64(str(dice.randint(10**17, 10**18)).encode())
    return f"{user}.{_base64(dice.randbytes(5))[:6]}.{_base64(dice.randbytes(29))[:38]}"


def _django(dice: random.Random) -> str:
    return "".join(dice.choices(string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)", k=50))


def _uuid(dice: random.Random) -> str:
    made = dice.randbytes(16).hex()
    return "-".join((made[:8], made[8:12], made[12:16], made[16:20], made[20:]))


def _mnemonic(dice: random.Random) -> str:
    """Twelve words of BIP-39 with the checksum that the standard wants."""
    from turnlog.redact.mnemonics import words

    listed = list(words())
    entropy = dice.randbytes(16)
    bits = int.from_bytes(entropy) << 4 | hashlib.sha256(entropy).digest()[0] >> 4
    return " ".join(listed[bits >> 11 * place & 2047] for place in reversed(range(12)))


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "basic": _basic,
    "b64password": lambda dice: base64.b64encode(_urlword(dice).encode()).decode(),
    "bech": lambda dice: "".join(dice.choices(ALPHABETS["q"].upper(), k=58)),
    "discord": _discord,
    "django": _django,
    "openvpn": _openvpn,
    "bechpub": lambda dice: "".join(dice.choices(ALPHABETS["q"], k=58)),
    "jwe": _jwe,
    "jwt": _jwt,
    "mnemonic": _mnemonic,
    "openssh": _pem("OPENSSH PRIVATE KEY"),
    "password": _password,
    "pem": _pem("RSA PRIVATE KEY"),
    "pgp": _pem("PGP PRIVATE KEY BLOCK"),
    "putty": _putty,
    "urlword": _urlword,
    "uuid": _uuid,
}
