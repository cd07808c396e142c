#!/usr/bin/env bash
# From a config with a fault to a trained model: lint, fix, compile, train eagerly and replayed, compare the losses.
# usage: recipes/demo.sh BIN_DIR   (where capstan and capstan-run are)
set -euo pipefail

bin=$(cd "${1:?usage: recipes/demo.sh BIN_DIR}" && pwd)
recipes=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=${CAPSTAN_DEMO_STEPS:-120}

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; }

mkdir "$work/data"
cp "$recipes/data/capstan_docs.txt" "$work/data/"
cp "$recipes/tiny_text.toml" "$work/tiny_text.toml"
cd "$work"

say "1. A config with two faults: no random-number tracker for the model, a NaN check inside the captured iteration"
sed -i 's/^use_te_rng_tracker = true/use_te_rng_tracker = false/; s/^check_for_nan_in_loss = false/check_for_nan_in_loss = true/' tiny_text.toml
show "capstan lint tiny_text.toml"
if "$bin/capstan" lint tiny_text.toml; then
  echo "the linter found nothing, which is wrong" >&2
  exit 1
fi

say "2. The proposed fixes, applied to the file; comments and layout stay"
show "capstan fix tiny_text.toml"
"$bin/capstan" fix tiny_text.toml
diff "$recipes/tiny_text.toml" tiny_text.toml || true
show "capstan lint tiny_text.toml"
"$bin/capstan" lint tiny_text.toml

say "3. Compiled to a plan"
show "capstan compile tiny_text.toml -o plan.json"
"$bin/capstan" compile tiny_text.toml -o plan.json
"$bin/capstan" compile tiny_text.toml --format text 2>/dev/null | grep '^segment'

say "4. Trained on real text, $steps steps, every op issued one by one"
show "capstan-run plan.json --eager --steps $steps --output eager"
"$bin/capstan-run" plan.json --eager --steps "$steps" --output eager

say "5. The same again: captured after the warm-up, then replayed"
show "capstan run tiny_text.toml -- --steps $steps --output replayed"
"$bin/capstan" run tiny_text.toml -- --steps "$steps" --output replayed

say "6. Losses, eager and replayed"
losses() { sed 's/.*"step": \([0-9]*\), "loss": \([0-9.e+-]*\).*/\1 \2/' "$1/metrics.jsonl"; }
paste <(losses eager) <(losses replayed | cut -d' ' -f2) | awk 'BEGIN { print " step        eager     replayed" } { printf "%5d %12.6f %12.6f\n", $1, $2, $3 }'
if cmp -s <(losses eager) <(losses replayed); then
  echo "equal, bit for bit"
else
  echo "the losses differ" >&2
  exit 5
fi
first=$(losses eager | head -n 1 | cut -d' ' -f2) last=$(losses eager | tail -n 1 | cut -d' ' -f2)
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a) }' || { echo "the loss did not fall: $first -> $last" >&2; exit 4; }
echo "loss $first -> $last"
