# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the other scripts: where the repository is, what building it
# needs, and how to install that.
#
# What seems unused here is used there:
# shellcheck disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What is looked for, and the Debian package that brings it. A thing is there
# if its command is, or if pkg-config knows its module: a machine may have it
# from elsewhere.
needs_of_build=(
	"command gcc build-essential"
	"command g++ build-essential"
	"command make build-essential"
	"command pkg-config pkg-config"
	"command python3 python3"
	"command meson meson"
	"command ninja ninja-build"
	"module liburcu-qsbr liburcu-dev"
	"module libxxhash libxxhash-dev"
	"module libdpdk libdpdk-dev"
	"module libpcap libpcap-dev"
	"module jansson libjansson-dev"
)
needs_of_tests=(
	"module check check"
	"module benchmark libbenchmark-dev"
	"command spin spin"
	"command ip iproute2"
	"command spin spin"
	"command ip iproute2"
)
needs_of_ci=(
	"command clang clang"
	"package libclang-rt-14-dev libclang-rt-14-dev"
)

say()
{
	printf '\n==> %s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

is_there()
{
	case $1 in
	command) command -v "$2" >/dev/null ;;
	module) pkg-config --exists "$2" 2>/dev/null ;;
	package) dpkg-query -W -f '${db:Status-Status}' "$2" 2>/dev/null |
		grep -qx installed ;;
	esac
}

# Set `missing` to the packages that these needs still want.
find_missing()
{
	local need kind name package

	missing=()
	for need in "$@"; do
		read -r kind name package <<<"$need"
		if ! is_there "$kind" "$name"; then
			[[ " ${missing[*]} " == *" $package "* ]] ||
				missing+=("$package")
		fi
	done
}

# Install what these needs want. Does nothing, quickly, if all is there.
install_needs()
{
	local missing
	local as_root=()

	find_missing "$@"
	[[ ${#missing[@]} -gt 0 ]] || return 0
	command -v apt-get >/dev/null ||
		die "please install what these Debian packages hold: ${missing[*]}"
	if [[ $EUID -ne 0 ]]; then
		command -v sudo >/dev/null ||
			die "neither root nor sudo; please have somebody run:" \
				"apt-get install ${missing[*]}"
		as_root=(sudo)
	fi
	say "Installing ${missing[*]}"
	"${as_root[@]}" apt-get update -q
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends "${missing[@]}" \
		</dev/null
	find_missing "$@"
	[[ ${#missing[@]} -eq 0 ]] ||
		die "still not there after the installation: ${missing[*]}"
}

# The options that build everything. Enabled and not auto: a part that cannot
# be built is to fail, not to be left out.
everything=(-Dapp=enabled -Dbench=enabled -Dtests=enabled)

# configure FOLDER [MESON OPTION...]: set a build folder up, or set it up again
# if it was with other options.
configure()
{
	local folder=$1
	local stamp=$folder/.options
	local how=()

	shift
	if [[ -f $folder/build.ninja ]]; then
		[[ ! -f $stamp || $(<"$stamp") != "$*" ]] || return 0
		how=(--reconfigure)
	fi
	say "Configuring ${folder#"$root"/}"
	meson setup "${how[@]}" "$folder" "$root" "$@" || return 1
	printf '%s\n' "$*" >"$stamp"
}
