"""Adjectives."""

from translator.demo.lexicon_entries import Adjective

_ARTEFACTS = ("clothes", "vehicle", "furniture", "device", "small", "building", "dishes")
_COLOURED = ("clothes", "vehicle", "flower", "opening")


def _colour(english: str, comparative: str, german: str, german_comparative: str, chinese: str) -> Adjective:
    return Adjective(
        english, comparative, german, german_comparative, chinese + "的", chinese, _COLOURED, identifying=True
    )


def _state(english: str, comparative: str, german: str, german_comparative: str, chinese: str) -> Adjective:
    return Adjective(
        english, comparative, german, german_comparative, chinese + "的", chinese, ("person",), predicative_only=True
    )


# fmt: off
ADJECTIVES: tuple[Adjective, ...] = (
    Adjective("new", "newer", "neu", "neuer", "新", "新", (*_ARTEFACTS, "film", "reading")),
    Adjective("old", "older", "alt", "älter", "旧", "旧", (*_ARTEFACTS, "reading", "picture")),
    Adjective("old", "older", "alt", "älter", "老", "老", ("adult", "animal"), chinese_comparative="年纪大"),
    Adjective("young", "younger", "jung", "jünger", "年轻的", "年轻", ("adult",)),
    Adjective("tall", "taller", "groß", "größer", "高个子的", "高", ("person",)),
    Adjective("big", "bigger", "groß", "größer", "大", "大",
              ("animal", "furniture", "building", "room", "fruit")),
    Adjective("small", "smaller", "klein", "kleiner", "小", "小", ("animal", "furniture", "building", "room", "fruit")),
    Adjective("expensive", "more expensive", "teuer", "teurer", "昂贵的", "贵", _ARTEFACTS, german_stem="teur"),
    Adjective("cheap", "cheaper", "billig", "billiger", "便宜的", "便宜", _ARTEFACTS),
    Adjective("beautiful", "more beautiful", "schön", "schöner", "漂亮的", "漂亮",
              ("clothes", "picture", "flower", "building", "room", "animal")),
    Adjective("interesting", "more interesting", "interessant", "interessanter", "有意思的", "有意思",
              ("reading", "film", "story", "question")),
    Adjective("boring", "more boring", "langweilig", "langweiliger", "无聊的", "无聊", ("reading", "film", "story")),
    Adjective("good", "better", "gut", "besser", "好", "好", ("reading", "film", "story", "device", "question")),
    Adjective("long", "longer", "lang", "länger", "很长的", "长", ("text", "story", "film")),
    Adjective("short", "shorter", "kurz", "kürzer", "简短的", "短", ("text", "story")),
    Adjective("funny", "funnier", "lustig", "lustiger", "好笑的", "好笑", ("story", "film", "picture")),
    Adjective("important", "more important", "wichtig", "wichtiger", "重要的", "重要", ("mail", "question")),
    Adjective("difficult", "more difficult", "schwierig", "schwieriger", "难的", "难", ("question",)),
    Adjective("easy", "easier", "einfach", "einfacher", "简单的", "简单", ("question",)),
    Adjective("heavy", "heavier", "schwer", "schwerer", "很重的", "重", ("furniture", "device", "vehicle")),
    Adjective("fresh", "fresher", "frisch", "frischer", "新鲜的", "新鲜", ("fruit", "vegetable", "staple")),
    Adjective("sweet", "sweeter", "süß", "süßer", "甜的", "甜", ("fruit",)),
    Adjective("hot", "hotter", "heiß", "heißer", "热", "热", ("hot drink",)),
    Adjective("warm", "warmer", "warm", "wärmer", "暖和的", "暖和", ("clothes", "room")),
    Adjective("clean", "cleaner", "sauber", "sauberer", "干净的", "干净", ("clothes", "dishes", "opening", "room")),
    Adjective("dirty", "dirtier", "schmutzig", "schmutziger", "脏", "脏", ("clothes", "dishes", "opening", "vehicle")),
    Adjective("dangerous", "more dangerous", "gefährlich", "gefährlicher", "危险的", "危险", ("wild",)),
    Adjective("friendly", "friendlier", "freundlich", "freundlicher", "友好的", "友好", ("person",)),
    Adjective("famous", "more famous", "berühmt", "berühmter", "有名的", "有名", ("profession",)),
    Adjective("clever", "cleverer", "klug", "klüger", "聪明的", "聪明", ("person", "pet")),
    Adjective("strong", "stronger", "stark", "stärker", "强壮的", "强壮", ("person", "wild")),
    Adjective("rich", "richer", "reich", "reicher", "富有的", "富有", ("adult",)),
    Adjective("lazy", "lazier", "faul", "fauler", "懒惰的", "懒", ("person", "pet")),
    _colour("red", "redder", "rot", "röter", "红色"),
    _colour("blue", "bluer", "blau", "blauer", "蓝色"),
    _colour("green", "greener", "grün", "grüner", "绿色"),
    _colour("black", "blacker", "schwarz", "schwärzer", "黑色"),
    _colour("white", "whiter", "weiß", "weißer", "白色"),
    _colour("yellow", "yellower", "gelb", "gelber", "黄色"),
)
# fmt: on

# Temporary states of people, used only as predicates.
STATES: tuple[Adjective, ...] = (
    _state("tired", "more tired", "müde", "müder", "累"),
    _state("happy", "happier", "glücklich", "glücklicher", "高兴"),
    _state("sad", "sadder", "traurig", "trauriger", "伤心"),
    _state("hungry", "hungrier", "hungrig", "hungriger", "饿"),
    _state("thirsty", "thirstier", "durstig", "durstiger", "渴"),
    _state("busy", "busier", "beschäftigt", "beschäftigter", "忙"),
    _state("nervous", "more nervous", "nervös", "nervöser", "紧张"),
    _state("angry", "angrier", "wütend", "wütender", "生气"),
)
