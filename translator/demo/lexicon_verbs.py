"""Verbs and modal verbs."""

from translator.demo.lexicon_entries import Aspect, Case, ChinesePattern, Modal, Verb

_OWNABLE = ("reading", "picture", "clothes", "vehicle", "device", "small", "furniture", "dishes", "flower")
_EVERYWHERE = ("home", "leisure")

# fmt: off
INTRANSITIVE_VERBS: tuple[Verb, ...] = (
    Verb("sleep", "slept", "schlafen", "schläft", "geschlafen", "睡觉", places=("home",)),
    Verb("work", "worked", "arbeiten", "arbeitet", "gearbeitet", "工作", places=("work", "home")),
    Verb("dance", "danced", "tanzen", "tanzt", "getanzt", "跳舞", places=_EVERYWHERE),
    Verb("sing", "sang", "singen", "singt", "gesungen", "唱歌", places=_EVERYWHERE),
    Verb("swim", "swam", "schwimmen", "schwimmt", "geschwommen", "游泳", places=("water",), english_ing="swimming",
         moves=True),
    Verb("laugh", "laughed", "lachen", "lacht", "gelacht", "笑", aspect=Aspect.REACTION),
    Verb("cry", "cried", "weinen", "weint", "geweint", "哭", aspect=Aspect.REACTION),
    Verb("cook", "cooked", "kochen", "kocht", "gekocht", "做饭", places=("home",)),
    Verb("play", "played", "spielen", "spielt", "gespielt", "玩", places=("leisure", "home")),
    Verb("smile", "smiled", "lächeln", "lächelt", "gelächelt", "微笑", german_first="lächle", aspect=Aspect.REACTION),
    Verb("get", "got", "stehen", "steht", "aufgestanden", "起床", english_ing="getting", english_particle="up",
         aspect=Aspect.EVENT,
         prefix="auf", moves=True),
    Verb("fall", "fell", "schlafen", "schläft", "eingeschlafen", "睡着", aspect=Aspect.ACCIDENT,
         english_particle="asleep", prefix="ein", moves=True),
    Verb("come", "came", "kommen", "kommt", "zurückgekommen", "回来", aspect=Aspect.EVENT, english_particle="back",
         prefix="zurück", moves=True),
    Verb("go", "went", "kaufen", "kauft", "eingekauft", "买东西", places=("shop", "city"), aspect=Aspect.EVENT,
         english_particle="shopping", prefix="ein"),
)

TRANSITIVE_VERBS: tuple[Verb, ...] = (
    Verb("eat", "ate", "essen", "isst", "gegessen", "吃", ("food",), ("eating", "home")),
    Verb("drink", "drank", "trinken", "trinkt", "getrunken", "喝", ("drink",), ("eating", "home")),
    Verb("read", "read", "lesen", "liest", "gelesen", "看", ("reading",), ("quiet", "home")),
    Verb("write", "wrote", "schreiben", "schreibt", "geschrieben", "写", ("text",), ("quiet", "home"), long_term=True),
    Verb("buy", "bought", "kaufen", "kauft", "gekauft", "买", (*_OWNABLE, "food", "drink", "building"), ("city",),
         long_term=True),
    Verb("sell", "sold", "verkaufen", "verkauft", "verkauft", "卖", (*_OWNABLE, "fruit", "building"), long_term=True),
    Verb("see", "saw", "sehen", "sieht", "gesehen", "看见", ("person", "name", "animal"), ("leisure",),
         Aspect.ACCIDENT),
    Verb("visit", "visited", "besuchen", "besucht", "besucht", "看望", ("person", "name", "relative"), ("city",),
         long_term=True),
    Verb("find", "found", "finden", "findet", "gefunden", "找到", ("small", "clothes", "pet"), (), Aspect.ACCIDENT),
    Verb("look for", "looked for", "suchen", "sucht", "gesucht", "找", ("small", "clothes", "pet"), (),
         english_ing="looking for"),
    Verb("lose", "lost", "verlieren", "verliert", "verloren", "弄丢", ("small", "clothes"), (), Aspect.ACCIDENT,
         long_term=True),
    Verb("wash", "washed", "waschen", "wäscht", "gewaschen", "洗", ("clothes", "vehicle")),
    Verb("clean", "cleaned", "putzen", "putzt", "geputzt", "打扫", ("room", "building")),
    Verb("repair", "repaired", "reparieren", "repariert", "repariert", "修理", ("vehicle", "device"), long_term=True),
    Verb("paint", "painted", "malen", "malt", "gemalt", "画", ("painting", "flower", "animal"), ("home",),
         long_term=True),
    Verb("feed", "fed", "füttern", "füttert", "gefüttert", "喂", ("animal",), german_first="füttere"),
    Verb("order", "ordered", "bestellen", "bestellt", "bestellt", "点", ("dish", "drink"), ("eating",)),
    Verb("bake", "baked", "backen", "backt", "gebacken", "烤", ("pastry",), ("home",)),
    Verb("boil", "boiled", "kochen", "kocht", "gekocht", "煮", ("boiled",), ("home",)),
    Verb("answer", "answered", "beantworten", "beantwortet", "beantwortet", "回答", ("question",)),
    Verb("learn", "learned", "lernen", "lernt", "gelernt", "学", ("language",), ("quiet", "home"), long_term=True),
    Verb("speak", "spoke", "sprechen", "spricht", "gesprochen", "说", ("language",)),
    Verb("understand", "understood", "verstehen", "versteht", "verstanden", "听懂", ("story", "question", "language"),
         (), Aspect.EVENT),
    Verb("wear", "wore", "tragen", "trägt", "getragen", "穿", ("worn",)),
    Verb("watch", "watched", "schauen", "schaut", "angeschaut", "看", ("film",), ("home",), prefix="an"),
    Verb("invite", "invited", "laden", "lädt", "eingeladen", "邀请", ("person", "name", "relative"), (), Aspect.EVENT,
         prefix="ein", long_term=True),
    Verb("pick", "picked", "holen", "holt", "abgeholt", "接", ("person", "name", "relative"), ("transport",),
         english_particle="up", prefix="ab"),
    Verb("call", "called", "rufen", "ruft", "angerufen", "打电话", ("person", "name", "relative"), prefix="an",
         pattern=ChinesePattern.COVERB, coverb="给"),
    Verb("open", "opened", "machen", "macht", "aufgemacht", "打开", ("opening",), (), Aspect.EVENT, prefix="auf"),
    Verb("close", "closed", "machen", "macht", "zugemacht", "关上", ("opening",), (), Aspect.EVENT, prefix="zu"),
    Verb("turn", "turned", "schalten", "schaltet", "eingeschaltet", "打开", ("switch",), (), Aspect.EVENT,
         english_particle="on", prefix="ein"),
    Verb("turn", "turned", "schalten", "schaltet", "ausgeschaltet", "关掉", ("switch",), (), Aspect.EVENT,
         english_particle="off", prefix="aus"),
    Verb("try", "tried", "probieren", "probiert", "anprobiert", "试穿", ("worn",), english_particle="on", prefix="an"),
    Verb("throw", "threw", "werfen", "wirft", "weggeworfen", "扔掉", ("paper",), (), Aspect.EVENT,
         english_particle="away", prefix="weg"),
    Verb("help", "helped", "helfen", "hilft", "geholfen", "帮助", ("person", "name", "relative"),
         object_case=Case.DATIVE),
    Verb("thank", "thanked", "danken", "dankt", "gedankt", "感谢", ("person", "name", "relative"), (), Aspect.EVENT,
         object_case=Case.DATIVE),
    Verb("wait", "waited", "warten", "wartet", "gewartet", "等", ("person", "name", "relative"), ("transport",),
         english_preposition="for", german_preposition="auf"),
    Verb("talk", "talked", "sprechen", "spricht", "gesprochen", "聊天", ("person", "name", "relative"), ("leisure",),
         english_preposition="to", german_preposition="mit", object_case=Case.DATIVE,
         pattern=ChinesePattern.COVERB, coverb="跟"),
)

STATIVE_VERBS: tuple[Verb, ...] = (
    Verb("have", "had", "haben", "hat", "gehabt", "有", ("pet", "vehicle", "device", "small", "question", "building"),
         (), Aspect.STATE, german_preterite="hatte"),
    Verb("like", "liked", "mögen", "mag", "gemocht", "喜欢", ("animal", "food", "drink", "film", "clothes", "name"),
         (), Aspect.STATE, german_first="mag", german_preterite="mochte", generic_objects=True),
    Verb("love", "loved", "lieben", "liebt", "geliebt", "爱", ("relative", "name"), (), Aspect.STATE,
         generic_objects=True),
    Verb("know", "knew", "kennen", "kennt", "gekannt", "认识", ("person", "name", "relative"), (), Aspect.STATE,
         german_preterite="kannte", generic_objects=True),
    Verb("need", "needed", "brauchen", "braucht", "gebraucht", "需要", ("small", "clothes", "vehicle", "device"), (),
         Aspect.STATE),
)

DITRANSITIVE_VERBS: tuple[Verb, ...] = (
    Verb("give", "gave", "geben", "gibt", "gegeben", "给", ("gift", "small", "mail", "fruit")),
    Verb("lend", "lent", "leihen", "leiht", "geliehen", "借给", ("reading", "vehicle", "small", "device"),
         long_term=True),
    Verb("show", "showed", "zeigen", "zeigt", "gezeigt", "看", ("picture", "mail", "gift", "clothes"),
         pattern=ChinesePattern.COVERB, coverb="给"),
    Verb("send", "sent", "schicken", "schickt", "geschickt", "寄", ("mail", "gift"), long_term=True,
         pattern=ChinesePattern.COVERB, coverb="给"),
    Verb("tell", "told", "erzählen", "erzählt", "erzählt", "讲", ("story",),
         pattern=ChinesePattern.COVERB, coverb="给"),
    Verb("bring", "brought", "bringen", "bringt", "mitgebracht", "带来", ("gift", "fruit", "pastry"), prefix="mit",
         aspect=Aspect.EVENT, pattern=ChinesePattern.COVERB, coverb="给"),
)

# The Chinese verb expresses only the manner; 去 or 回 follows, depending on the place.
MOTION_VERBS: tuple[Verb, ...] = (
    Verb("go", "went", "gehen", "geht", "gegangen", "", places=("near", "walkable"), moves=True),
    Verb("walk", "walked", "laufen", "läuft", "gelaufen", "走路", places=("homeward", "walkable"), moves=True),
    Verb("run", "ran", "rennen", "rennt", "gerannt", "跑", places=("homeward", "walkable"), moves=True,
         english_ing="running"),
    Verb("fly", "flew", "fliegen", "fliegt", "geflogen", "坐飞机", places=("city name",), moves=True, long_term=True),
    Verb("go", "went", "fahren", "fährt", "gefahren", "", places=("walkable", "city name"), moves=True,
         needs_means=True),
)

RESIDING_VERBS: tuple[Verb, ...] = (
    Verb("live", "lived", "wohnen", "wohnt", "gewohnt", "住在", places=("city name",), aspect=Aspect.STATE,
         goal_is_location=True, long_term=True),
    Verb("stay", "stayed", "bleiben", "bleibt", "geblieben", "待在", places=("homeward", "city name"),
         aspect=Aspect.EVENT, moves=True, goal_is_location=True),
    Verb("arrive", "arrived", "kommen", "kommt", "angekommen", "到达", places=("transport", "city name"),
         aspect=Aspect.EVENT, english_ing="arriving", prefix="an", moves=True, goal_is_location=True),
)

PUT = Verb("put", "put", "legen", "legt", "gelegt", "放", ("flat",), aspect=Aspect.EVENT, english_ing="putting",
           pattern=ChinesePattern.DISPOSAL)

REPORTING_VERBS: tuple[Verb, ...] = (
    Verb("say", "said", "sagen", "sagt", "gesagt", "说", aspect=Aspect.STATE),
    Verb("believe", "believed", "glauben", "glaubt", "geglaubt", "相信", aspect=Aspect.STATE),
    Verb("think", "thought", "denken", "denkt", "gedacht", "觉得", aspect=Aspect.STATE, german_preterite="dachte"),
    Verb("hope", "hoped", "hoffen", "hofft", "gehofft", "希望", aspect=Aspect.STATE),
)

KNOW_THAT = Verb("know", "knew", "wissen", "weiß", "gewusst", "知道", aspect=Aspect.STATE, german_first="weiß",
                 german_preterite="wusste")

WEATHER_VERBS: tuple[Verb, ...] = (
    Verb("rain", "rained", "regnen", "regnet", "geregnet", "下雨"),
    Verb("snow", "snowed", "schneien", "schneit", "geschneit", "下雪"),
)

BE = Verb("be", "was", "sein", "ist", "gewesen", "是", aspect=Aspect.STATE, moves=True, german_first="bin",
          german_plural="sind", german_preterite="war")
# fmt: on

CAN = Modal("can", "can", "could", "", "können", "kann", "konnte", "能", "不能", "没能")
MUST = Modal("have", "has", "had", "to", "müssen", "muss", "musste", "必须", "不必", "不必")
WANT = Modal("want", "wants", "wanted", "to", "wollen", "will", "wollte", "想", "不想", "不想")
SHOULD = Modal("should", "should", "", "", "sollen", "sollte", "", "应该", "不应该", "")
MAY = Modal("may", "may", "", "", "dürfen", "darf", "", "可以", "不可以", "")
MODALS: tuple[Modal, ...] = (CAN, MUST, WANT, SHOULD, MAY)

ALL_VERBS: tuple[Verb, ...] = (
    *INTRANSITIVE_VERBS,
    *TRANSITIVE_VERBS,
    *STATIVE_VERBS,
    *DITRANSITIVE_VERBS,
    *MOTION_VERBS,
    *RESIDING_VERBS,
    PUT,
    *REPORTING_VERBS,
    KNOW_THAT,
    *WEATHER_VERBS,
    BE,
)
