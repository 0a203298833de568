#!/bin/sh
# venv.sh DIR [FILE]: makes the virtual environment DIR with what requirements.txt says and the package itself, and then with what FILE
# says. It does nothing where that is done: stamps in DIR say what it was done for.
set -eu
venv=$1
more=${2:-}
here=$(dirname "$0")
pip() {
	"$venv/bin/python" -m pip install -q --disable-pip-version-check "$@"
}

python=$(sh "$here/interpreter.sh")
made=$("$python" -c 'import sys; print(sys.executable, *sys.version_info[:3])')
if [ "$(cat "$venv/made" 2>/dev/null)" != "$made" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	echo "$made" >"$venv/made"
fi

# stamped STAMP FILE...: whether the stamp is that of the files as they are.
stamped() {
	stamp=$venv/$1
	shift
	have=$(cat "$@" | cksum)
	[ "$(cat "$stamp" 2>/dev/null)" = "$have" ]
}

if ! stamped installed "$here/requirements.txt" "$here/pyproject.toml" "$here/mobula/_version.py"; then
	echo "$venv: installing what $here/requirements.txt says, with $python"
	pip -r "$here/requirements.txt"
	pip --no-deps --no-build-isolation -e "$here"
	echo "$have" >"$stamp"
fi
# As pip does with a package that it copies: workers need not compile it, also where the environment keeps Python from writing that down.
"$venv/bin/python" -m compileall -q "$here/mobula"
if [ -n "$more" ] && ! stamped installed-more "$here/requirements.txt" "$more"; then
	echo "$venv: installing what $more says"
	pip -r "$more"
	echo "$have" >"$stamp"
fi
