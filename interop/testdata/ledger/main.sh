# Charges the ledger over HTTP with curl: URL JOURNAL STEP... Prints a word for each step.
url=${1%/} hold=
shift 2
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# post sends a body to a path, and prints a word for the status.
post() {
	case $(curl -s -o "$out" -w '%{http_code}' "$url/v1/$1" -d "$2" \
		-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json') in
	20?) echo ok ;;
	429) echo denied ;;
	422) echo never ;;
	*) echo failed ;;
	esac
}

for step; do
	n=${step#*=}
	case $step in
	charge=*) post charges "{\"units\":$n}" ;;
	hold=*)
		post holds "{\"units\":$n,\"ttl\":\"1h\",\"lapse\":\"charge\"}"
		hold=$(sed -n 's/.*"hold":"\([^"]*\)".*/\1/p' "$out")
		;;
	settle=*) [ "$hold" ] && post "holds/$hold/settlements" "{\"costs\":{\"default\":$n}}" || echo none ;;
	esac
done
