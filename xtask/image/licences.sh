#!/bin/sh
# Puts Kite's licence and those of every crate that is linked into the six
# programs into a folder: their licences ask to travel with the binaries.
# Runs in the top folder, after a build has fetched the crates.
set -eu

to=${1:?the folder to write}
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src

mkdir -p "$to/third-party"
cp LICENSE NOTICE "$to/"

# One line for each: name, version, what the crate says its licence is. Crates
# that only run during a build, and those of the workspace, are not in the images.
cargo tree --locked --edges normal,no-proc-macro --prefix none --format '{p} {l}' \
    --package kite-user --package kite-namespace --package kite-vm \
    --package kite-vm-status --package kite-service --package kite-datavolume |
    sed -e 's/ (\*)$//' -e '/ (\//d' -e '/^$/d' | sort -u >"$to/third-party/LIST"

while read -r name version licence; do
    crate=$name-${version#v}
    for folder in "$registry"/*/"$crate"; do
        [ -d "$folder" ] || { echo "the sources of $crate are not in $registry" >&2; exit 1; }
        for file in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/COPYRIGHT* "$folder"/NOTICE*; do
            [ -f "$file" ] || continue
            mkdir -p "$to/third-party/$crate"
            cp "$file" "$to/third-party/$crate/"
        done
    done
    # Some publish no text; what they say stands in LIST, and their licence is one of these texts.
    [ -d "$to/third-party/$crate" ] || echo "$crate ($licence) comes without a text" >&2
done <"$to/third-party/LIST"
