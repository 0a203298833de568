#!/bin/sh
# Prints the path of the Python that the SDK is developed with: the one that PYTHON names, else the first of the usual names that will
# do. It fails, and says why, where there is none.
set -u
why=
missing=
for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
	if ! command -v "$name" >/dev/null; then
		missing="$missing $name"
		continue
	fi
	# Of a virtual environment, the Python that it was made with.
	if said=$("$name" - 2>&1 <<-'EOF'
		import importlib.util, os, sys
		if sys.version_info < (3, 11):
		    sys.exit("is Python %d.%d" % sys.version_info[:2])
		for module in ("venv", "ensurepip"):
		    if importlib.util.find_spec(module) is None:
		        sys.exit("has no module %s (Debian: apt install python3-venv)" % module)
		base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
		print(base if os.access(base, os.X_OK) else sys.executable)
		EOF
	); then
		echo "$said"
		exit 0
	fi
	why="$why; $name $said"
done
echo "Python 3.11 or later, with venv and pip, is needed${why}${missing:+; not on PATH:}${missing}. PYTHON= names another." >&2
exit 1
