package regions

import "strings"

// assigned holds the 249 officially assigned codes of ISO 3166-1, each followed by a blank.
const assigned = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ " +
	"BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ " +
	"CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ " +
	"DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY " +
	"HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP " +
	"KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY " +
	"MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ " +
	"NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY " +
	"QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ " +
	"TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ " +
	"VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW "

// slips maps common mistakes to codes: the code of a language, the letters on cars or in the
// European Union, or a three-letter code. The mistakes come before their "=".
const slips = " UK EN GBR ENG =GB EL GRC =GR JA JPN =JP KO KOR =KR ZH CHN =CN USA =US " +
	"DEU GER D =DE FRA F =FR BRA =BR IND =IN AUS =AU CAN =CA MEX =MX RUS =RU ESP =ES ITA =IT "

// slip returns the region that a common mistake stands for.
func slip(code string) (region string, ok bool) {
	if strings.ContainsAny(code, " =") {
		return "", false
	}
	_, after, ok := strings.Cut(slips, " "+code+" ")
	_, region, _ = strings.Cut(after, "=")
	return region[:min(2, len(region))], ok && code != ""
}
