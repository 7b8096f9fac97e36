"""Places, spatial relations, means of transport, frequency adverbs and time expressions."""

from translator.demo.lexicon_entries import Case, Frequency, Gender, Means, Place, Relation, Segment, TimePhrase

_MASCULINE, _FEMININE, _NEUTER = Gender.MASCULINE, Gender.FEMININE, Gender.NEUTER


def _entered(
    english: str, german: str, gender: Gender, chinese: str, *kinds: str, preposition: str = "in", suffix: str = "里"
) -> Place:
    """A place one goes into: "in den Park"."""
    return Place(
        english, preposition, german, gender, "in", "in", Case.ACCUSATIVE, chinese, suffix, (*kinds, "walkable")
    )


def _approached(
    english: str, german: str, gender: Gender, at: str, chinese: str, *kinds: str, suffix: str = ""
) -> Place:
    """A place one goes up to: "zum Bahnhof"."""
    return Place(english, "at", german, gender, at, "zu", Case.DATIVE, chinese, suffix, (*kinds, "walkable"))


def _city(english: str, german: str, chinese: str) -> Place:
    return Place(
        english, "in", german, _NEUTER, "in", "nach", Case.DATIVE, chinese, "", ("city", "city name"), article=False
    )


def _room(english: str, german: str, gender: Gender, chinese: str) -> Place:
    return Place(english, "in", german, gender, "in", "in", Case.ACCUSATIVE, chinese, "里", ("home", "near"))


PLACES: tuple[Place, ...] = (
    _entered("park", "Park", _MASCULINE, "公园", "leisure", "quiet"),
    _entered("zoo", "Zoo", _MASCULINE, "动物园", "leisure"),
    _entered("museum", "Museum", _NEUTER, "博物馆", "work", "leisure"),
    _entered("library", "Bibliothek", _FEMININE, "图书馆", "quiet", "work"),
    _entered("hospital", "Krankenhaus", _NEUTER, "医院", "work"),
    _entered("restaurant", "Restaurant", _NEUTER, "餐馆", "eating", "work"),
    _entered("café", "Café", _NEUTER, "咖啡馆", "eating", "quiet", "leisure"),
    _entered("office", "Büro", _NEUTER, "办公室", "work", "quiet"),
    _entered("school", "Schule", _FEMININE, "学校", "work", preposition="at"),
    _entered("cinema", "Kino", _NEUTER, "电影院", "work", preposition="at"),
    _entered("theater", "Theater", _NEUTER, "剧院", "work", "leisure", preposition="at"),
    _entered("swimming pool", "Schwimmbad", _NEUTER, "游泳馆", "water"),
    _approached("station", "Bahnhof", _MASCULINE, "an", "火车站", "transport"),
    _approached("airport", "Flughafen", _MASCULINE, "an", "机场", "transport", "work"),
    _approached("university", "Universität", _FEMININE, "an", "大学", "work", "quiet", suffix="里"),
    _approached("beach", "Strand", _MASCULINE, "an", "海滩", "leisure", "water", suffix="上"),
    _approached("supermarket", "Supermarkt", _MASCULINE, "in", "超市", "shop", "work", suffix="里"),
    _approached("market", "Markt", _MASCULINE, "auf", "市场", "shop", suffix="上"),
    _approached("bakery", "Bäckerei", _FEMININE, "in", "面包店", "shop", "work", suffix="里"),
    _room("kitchen", "Küche", _FEMININE, "厨房"),
    _room("garden", "Garten", _MASCULINE, "花园"),
    Place(
        "home",
        "at",
        "Hause",
        _NEUTER,
        "zu",
        "nach",
        Case.DATIVE,
        "家",
        "里",
        ("home", "near", "homeward"),
        "",
        False,
        "回",
    ),
    _city("Berlin", "Berlin", "柏林"),
    _city("Hamburg", "Hamburg", "汉堡"),
    _city("Munich", "München", "慕尼黑"),
    _city("Vienna", "Wien", "维也纳"),
    _city("London", "London", "伦敦"),
    _city("Paris", "Paris", "巴黎"),
    _city("Beijing", "Peking", "北京"),
    _city("Shanghai", "Shanghai", "上海"),
)

ON = Relation("on", "auf", "上")
RELATIONS: tuple[Relation, ...] = (
    ON,
    Relation("under", "unter", "下面"),
    Relation("behind", "hinter", "后面"),
    Relation("in front of", "vor", "前面"),
    Relation("next to", "neben", "旁边"),
)

MEANS: tuple[Means, ...] = (
    Means("train", "Zug", _MASCULINE, "坐", "火车"),
    Means("bus", "Bus", _MASCULINE, "坐", "公共汽车"),
    Means("taxi", "Taxi", _NEUTER, "坐", "出租车", local=True),
    Means("car", "Auto", _NEUTER, "开", "车"),
    Means("bicycle", "Fahrrad", _NEUTER, "骑", "自行车", local=True),
)

NEVER = Frequency("never", "nie", "从不")
FREQUENCIES: tuple[Frequency, ...] = (
    Frequency("always", "immer", "总是"),
    Frequency("often", "oft", "经常"),
    Frequency("sometimes", "manchmal", "有时"),
    Frequency("usually", "normalerweise", "通常"),
    Frequency("rarely", "selten", "很少"),
    NEVER,
)


def _phrase(*segments: tuple[str, str, str]) -> TimePhrase:
    return TimePhrase(tuple(Segment(*segment) for segment in segments))


_WEEKDAYS = tuple(
    _phrase(("on", "am", ""), day)
    for day in (
        ("Monday", "Montag", "星期一"),
        ("Tuesday", "Dienstag", "星期二"),
        ("Wednesday", "Mittwoch", "星期三"),
        ("Thursday", "Donnerstag", "星期四"),
        ("Friday", "Freitag", "星期五"),
        ("Saturday", "Samstag", "星期六"),
        ("Sunday", "Sonntag", "星期日"),
    )
)

YESTERDAY = _phrase(("yesterday", "gestern", "昨天"))
TOMORROW = _phrase(("tomorrow", "morgen", "明天"))

# Days that can be combined with a time of day.
PAST_DAYS: tuple[TimePhrase, ...] = (YESTERDAY, *_WEEKDAYS)
FUTURE_DAYS: tuple[TimePhrase, ...] = (TOMORROW, *_WEEKDAYS)

PAST_TIMES: tuple[TimePhrase, ...] = (
    YESTERDAY,
    _phrase(("yesterday", "gestern", "昨天"), ("evening", "Abend", "晚上")),
    _phrase(("last", "letzte", "上个"), ("week", "Woche", "星期")),
    *_WEEKDAYS,
)
FUTURE_TIMES: tuple[TimePhrase, ...] = (
    TOMORROW,
    _phrase(("tomorrow", "morgen", "明天"), ("evening", "Abend", "晚上")),
    _phrase(("next", "nächste", "下个"), ("week", "Woche", "星期")),
    *_WEEKDAYS,
)
# More distant times, too vague for momentary events.
DISTANT_PAST_TIMES: tuple[TimePhrase, ...] = (
    _phrase(("last", "letzten", "上个"), ("month", "Monat", "月")),
    _phrase(("last", "letztes", "去"), ("year", "Jahr", "年")),
)
DISTANT_FUTURE_TIMES: tuple[TimePhrase, ...] = (
    _phrase(("next", "nächsten", "下个"), ("month", "Monat", "月")),
    _phrase(("next", "nächstes", "明"), ("year", "Jahr", "年")),
)
HABITUAL_TIMES: tuple[TimePhrase, ...] = (
    _phrase(("every", "jeden", "每"), ("day", "Tag", "天")),
    _phrase(("every", "jeden", "每天"), ("morning", "Morgen", "早上")),
    _phrase(("every", "jeden", "每天"), ("evening", "Abend", "晚上")),
    _phrase(("every", "jede", "每个"), ("week", "Woche", "星期")),
    _phrase(("every", "jedes", "每个"), ("weekend", "Wochenende", "周末")),
)
SEASONS: tuple[TimePhrase, ...] = tuple(
    _phrase(("in", "im", ""), season)
    for season in (
        ("spring", "Frühling", "春天"),
        ("summer", "Sommer", "夏天"),
        ("autumn", "Herbst", "秋天"),
        ("winter", "Winter", "冬天"),
    )
)
