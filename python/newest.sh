#!/bin/sh
# Prints the path of the newest Python that this machine has or can get: one on PATH or of pyenv, or one that uv brings, where uv is there and
# may load it. It says on standard error which one it is.
set -u
wanted=3.14

# here VERSION: the path of a Python of the version that runs.
here() {
	for python in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/"python$1"; do
		if [ -n "$python" ] && "$python" -c '' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	return 1
}

found() {
	echo "the newest Python is $1" >&2
	echo "$1"
	exit 0
}

for version in 3.15 3.14; do
	if python=$(here $version); then found "$python"; fi
done
if command -v uv >/dev/null && timeout 300 uv python install -q $wanted >&2 && python=$(uv python find $wanted); then
	found "$python"
fi
for version in 3.13 3.12; do
	if python=$(here $version); then found "$python"; fi
done
found "$(sh "$(dirname "$0")/interpreter.sh")"
