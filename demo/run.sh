#!/bin/sh
# The main job on real documents: ingest the handbook, ask it, and show what it answers and where that stands.
# usage: run.sh PATH/TO/cognicraft
set -eu
cognicraft=$1
folder=$(dirname "$0")
home=.demo
"$cognicraft" ingest "$folder/documents" --home "$home" --workspace handbook
grep -v -e '^#' -e '^$' "$folder/questions.txt" | while IFS= read -r question; do
    printf '\n\033[1m> %s\033[0m\n' "$question"
    "$cognicraft" ask "$question" --home "$home" --workspace handbook < /dev/null
done
