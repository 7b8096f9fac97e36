"""Hand-written simple sentences in three languages."""

import pytest

from translator.demo.generator import realise
from translator.demo.lexicon import adjective, frequency, means, name, noun, place, verb
from translator.demo.lexicon_adverbials import (
    DISTANT_FUTURE_TIMES,
    DISTANT_PAST_TIMES,
    FUTURE_TIMES,
    HABITUAL_TIMES,
    ON,
    PAST_TIMES,
    RELATIONS,
    SEASONS,
    TOMORROW,
    YESTERDAY,
)
from translator.demo.lexicon_entries import ClockTime, Gender
from translator.demo.lexicon_nouns import CONTAINERS
from translator.demo.lexicon_verbs import CAN, MAY, MUST, PUT, SHOULD, WANT
from translator.demo.syntax import (
    Action,
    Clause,
    Comparison,
    Conjoined,
    DayTime,
    Determiner,
    Expletive,
    Named,
    NounPhrase,
    Occupation,
    Person,
    Position,
    Pronoun,
    Quality,
    Request,
    Spot,
    Statement,
    Tense,
)

PRESENT, PROGRESSIVE, PAST, FUTURE = Tense.PRESENT, Tense.PROGRESSIVE, Tense.PAST, Tense.FUTURE
THE, THIS, MANY, MY, OUR, HIS, HER = (
    Determiner.DEFINITE,
    Determiner.THIS,
    Determiner.MANY,
    Determiner.MY,
    Determiner.OUR,
    Determiner.HIS,
    Determiner.HER,
)
ANNA, PETER, MARIA, PAUL = (Named(name(spelling)) for spelling in ("Anna", "Peter", "Maria", "Paul"))
SPEAKER, HE, SHE, WE, THEY = (Pronoun(person) for person in Person)
CUP, GLASS, BOTTLE = CONTAINERS
MONDAY, YESTERDAY_EVENING, LAST_WEEK = PAST_TIMES[3], PAST_TIMES[1], PAST_TIMES[2]


def the(english: str, **parts: object) -> NounPhrase:
    return NounPhrase(noun(english), THE, **parts)


def a(english: str, **parts: object) -> NounPhrase:
    return NounPhrase(noun(english), **parts)


def do(english: str, *parts: object, german: str = "", **named: object) -> Action:
    return Action(verb(english, german), *parts, **named)


# Each row: the clause, then what a native speaker of English, German and Chinese would say.
STATEMENTS = [
    # Past: perfect with haben and sein, participle at the end; separable and inseparable verbs; -ieren
    (Clause(ANNA, do("buy", a("book")), PAST), "Anna bought a book.", "Anna hat ein Buch gekauft.", "安娜买了一本书。"),
    (Clause(PETER, do("go", goal=place("park"), german="gehen"), PAST, time=YESTERDAY),
     "Peter went to the park yesterday.", "Peter ist gestern in den Park gegangen.", "彼得昨天去了公园。"),
    (Clause(HE, do("repair", the("bicycle")), PAST),
     "He repaired the bicycle.", "Er hat das Fahrrad repariert.", "他修理了那辆自行车。"),
    (Clause(ANNA, do("go shopping"), PAST, time=YESTERDAY, time_first=True, place=place("supermarket")),
     "Yesterday Anna went shopping at the supermarket.", "Gestern hat Anna im Supermarkt eingekauft.",
     "昨天安娜在超市里买东西了。"),
    (Clause(SHE, do("sell", NounPhrase(noun("car"), HER)), PAST, time=DISTANT_PAST_TIMES[1]),
     "She sold her car last year.", "Sie hat letztes Jahr ihr Auto verkauft.", "她去年卖了她的汽车。"),
    (Clause(PAUL, do("lose", NounPhrase(noun("key"), HIS)), PAST, time=LAST_WEEK),
     "Paul lost his key last week.", "Paul hat letzte Woche seinen Schlüssel verloren.",
     "保罗上个星期弄丢了他的钥匙。"),
    # Preterite of sein, haben, modals and a few others
    (Clause(ANNA, Quality(adjective("tired")), PAST, time=YESTERDAY_EVENING),
     "Anna was tired yesterday evening.", "Anna war gestern Abend müde.", "安娜昨天晚上很累。"),
    (Clause(WE, do("have", a("dog")), PAST), "We had a dog.", "Wir hatten einen Hund.", "我们有一只狗。"),
    (Clause(THEY, do("know", ANNA, german="kennen"), PAST), "They knew Anna.", "Sie kannten Anna.", "他们认识安娜。"),
    # Separable verbs in the present
    (Clause(ANNA, do("get up"), time=DayTime(ClockTime(7, 30))),
     "Anna gets up at half past seven.", "Anna steht um halb acht auf.", "安娜七点半起床。"),
    (Clause(PETER, do("call", NounPhrase(noun("mother"), HIS)), frequency=frequency("often")),
     "Peter often calls his mother.", "Peter ruft oft seine Mutter an.", "彼得经常给他的妈妈打电话。"),
    (Clause(SPEAKER, do("turn off", the("radio")), PAST),
     "I turned off the radio.", "Ich habe das Radio ausgeschaltet.", "我关掉了那台收音机。"),
    # Progressive
    (Clause(ANNA, do("read", a("newspaper")), PROGRESSIVE),
     "Anna is reading a newspaper.", "Anna liest gerade eine Zeitung.", "安娜正在看一份报纸。"),
    (Clause(the("child", plural=True), do("dance"), PROGRESSIVE, place=place("garden")),
     "The children are dancing in the garden.", "Die Kinder tanzen gerade im Garten.", "那些孩子正在花园里跳舞。"),
    (Clause(SPEAKER, do("try on", the("coat")), PROGRESSIVE),
     "I am trying on the coat.", "Ich probiere gerade den Mantel an.", "我正在试穿那件大衣。"),
    # Future and modals, with the infinitive at the end
    (Clause(MARIA, do("fly", goal=place("Beijing")), FUTURE, time=DISTANT_FUTURE_TIMES[1]),
     "Maria will fly to Beijing next year.", "Maria wird nächstes Jahr nach Peking fliegen.",
     "玛丽亚明年会坐飞机去北京。"),
    (Clause(ANNA, do("invite", PETER), modal=WANT),
     "Anna wants to invite Peter.", "Anna will Peter einladen.", "安娜想邀请彼得。"),
    (Clause(SPEAKER, do("work"), modal=MUST, time=TOMORROW),
     "I have to work tomorrow.", "Ich muss morgen arbeiten.", "我明天必须工作。"),
    (Clause(WE, do("clean", the("room")), modal=SHOULD),
     "We should clean the room.", "Wir sollten das Zimmer putzen.", "我们应该打扫那个房间。"),
    (Clause(HE, do("speak", a("German")), modal=CAN),
     "He can speak German.", "Er kann Deutsch sprechen.", "他能说德语。"),
    (Clause(the("boy"), do("play"), modal=MAY, place=place("park")),
     "The boy may play in the park.", "Der Junge darf im Park spielen.", "那个男孩可以在公园里玩。"),
    (Clause(THEY, do("wait", the("student")), PAST, modal=MUST),
     "They had to wait for the student.", "Sie mussten auf den Studenten warten.", "他们必须等那位大学生。"),
    # Negation: nicht, kein, 不, 没, 没有
    (Clause(ANNA, do("read", the("book")), PAST, negated=True, time=YESTERDAY),
     "Anna did not read the book yesterday.", "Anna hat das Buch gestern nicht gelesen.", "安娜昨天没看那本书。"),
    (Clause(PETER, do("have", a("car")), negated=True),
     "Peter does not have a car.", "Peter hat kein Auto.", "彼得没有汽车。"),
    (Clause(SPEAKER, do("drink", a("coffee")), negated=True),
     "I do not drink coffee.", "Ich trinke keinen Kaffee.", "我不喝咖啡。"),
    (Clause(MARIA, Occupation(noun("teacher"), Gender.FEMININE), negated=True),
     "Maria is not a teacher.", "Maria ist keine Lehrerin.", "玛丽亚不是老师。"),
    (Clause(HE, do("come back"), negated=True, modal=CAN),
     "He cannot come back.", "Er kann nicht zurückkommen.", "他不能回来。"),
    (Clause(WE, do("go", goal=place("airport"), means=means("taxi"), german="fahren"), negated=True, modal=MUST),
     "We do not have to go to the airport by taxi.", "Wir müssen nicht mit dem Taxi zum Flughafen fahren.",
     "我们不必坐出租车去机场。"),
    (Clause(ANNA, do("find", the("key")), PAST, negated=True, modal=CAN),
     "Anna could not find the key.", "Anna konnte den Schlüssel nicht finden.", "安娜没能找到那把钥匙。"),
    (Clause(PAUL, do("sleep"), PROGRESSIVE, negated=True),
     "Paul is not sleeping.", "Paul schläft gerade nicht.", "保罗没在睡觉。"),
    (Clause(SHE, do("eat", a("meat")), frequency=frequency("never")),
     "She never eats meat.", "Sie isst nie Fleisch.", "她从不吃肉。"),
    # Ditransitive verbs; verbs with dative objects; weak nouns; dative plural
    (Clause(PETER, do("give", the("apple"), the("child")), PAST),
     "Peter gave the child the apple.", "Peter hat dem Kind den Apfel gegeben.", "彼得给了那个孩子那个苹果。"),
    (Clause(ANNA, do("show", a("photo"), the("neighbor")), PAST, time=MONDAY),
     "Anna showed the neighbor a photo on Monday.", "Anna hat dem Nachbarn am Montag ein Foto gezeigt.",
     "安娜星期一给那位邻居看了一张照片。"),
    (Clause(the("nurse"), do("help", the("woman", plural=True)), frequency=frequency("always")),
     "The nurse always helps the women.", "Die Krankenschwester hilft immer den Frauen.", "那位护士总是帮助那些女人。"),
    (Clause(SPEAKER, do("thank", the("boy")), PAST),
     "I thanked the boy.", "Ich habe dem Jungen gedankt.", "我感谢了那个男孩。"),
    (Clause(WE, do("tell", a("story", adjective=adjective("funny")), the("child", plural=True)), FUTURE),
     "We will tell the children a funny story.", "Wir werden den Kindern eine lustige Geschichte erzählen.",
     "我们会给那些孩子讲一个好笑的故事。"),
    # Adjectives, numbers, measure words, possession
    (Clause(PAUL, do("buy", a("car", adjective=adjective("expensive"))), PAST),
     "Paul bought an expensive car.", "Paul hat ein teures Auto gekauft.", "保罗买了一辆昂贵的汽车。"),
    (Clause(ANNA, do("find", a("key", count=21)), PAST),
     "Anna found twenty-one keys.", "Anna hat einundzwanzig Schlüssel gefunden.", "安娜找到了二十一把钥匙。"),
    (Clause(MARIA, do("drink", a("coffee", count=2, container=CUP)), PAST),
     "Maria drank two cups of coffee.", "Maria hat zwei Tassen Kaffee getrunken.", "玛丽亚喝了两杯咖啡。"),
    (Clause(PETER, do("order", a("tea", adjective=adjective("hot"), container=CUP)), PAST),
     "Peter ordered a cup of hot tea.", "Peter hat eine Tasse heißen Tee bestellt.", "彼得点了一杯热茶。"),
    (Clause(a("tourist", count=3), do("see", a("elephant", adjective=adjective("big", "animal"))), PAST),
     "Three tourists saw a big elephant.", "Drei Touristen haben einen großen Elefanten gesehen.",
     "三位游客看见了一头很大的大象。"),
    (Clause(the("dog", possessor=ANNA), do("sleep"), PROGRESSIVE),
     "Anna's dog is sleeping.", "Annas Hund schläft gerade.", "安娜的狗正在睡觉。"),
    (Clause(SPEAKER, do("wash", the("car", possessor=the("doctor"))), PAST),
     "I washed the doctor's car.", "Ich habe das Auto des Arztes gewaschen.", "我洗了那位医生的汽车。"),
    (Clause(NounPhrase(noun("grandmother"), OUR), do("need", NounPhrase(noun("coat"), THIS,
     adjective=adjective("warm")))),
     "Our grandmother needs this warm coat.", "Unsere Großmutter braucht diesen warmen Mantel.",
     "我们的奶奶需要这件暖和的大衣。"),
    (Clause(the("artist"), do("paint", NounPhrase(noun("picture"), MANY, True,
     adjective=adjective("beautiful"))), FUTURE),
     "The artist will paint many beautiful pictures.", "Der Künstler wird viele schöne Bilder malen.",
     "那位艺术家会画很多漂亮的画。"),
    # The copula: occupations, qualities, comparisons, positions
    (Clause(ANNA, Occupation(noun("doctor"), Gender.FEMININE)),
     "Anna is a doctor.", "Anna ist Ärztin.", "安娜是医生。"),
    (Clause(HE, Occupation(noun("engineer"), Gender.MASCULINE), PAST),
     "He was an engineer.", "Er war Ingenieur.", "他是工程师。"),
    (Clause(NounPhrase(noun("bicycle"), MY), Quality(adjective("red"))),
     "My bicycle is red.", "Mein Fahrrad ist rot.", "我的自行车是红色的。"),
    (Clause(the("film"), Quality(adjective("boring")), negated=True),
     "The film is not boring.", "Der Film ist nicht langweilig.", "那部电影不无聊。"),
    (Clause(ANNA, Comparison(adjective("tall"), PETER)),
     "Anna is taller than Peter.", "Anna ist größer als Peter.", "安娜比彼得高。"),
    (Clause(the("cat"), Position(Spot(RELATIONS[1], the("table")))),
     "The cat is under the table.", "Die Katze ist unter dem Tisch.", "那只猫在桌子下面。"),
    (Clause(Conjoined(ANNA, PETER), Position(place("home"))),
     "Anna and Peter are at home.", "Anna und Peter sind zu Hause.", "安娜和彼得在家里。"),
    # Places and directions
    (Clause(ANNA, Action(PUT, the("letter"), goal=Spot(ON, the("table"))), PAST),
     "Anna put the letter on the table.", "Anna hat den Brief auf den Tisch gelegt.", "安娜把那封信放在了桌子上。"),
    (Clause(PETER, do("walk", goal=place("home")), PAST),
     "Peter walked home.", "Peter ist nach Hause gelaufen.", "彼得走路回家了。"),
    (Clause(SPEAKER, do("live", goal=place("Munich"))), "I live in Munich.", "Ich wohne in München.", "我住在慕尼黑。"),
    (Clause(MARIA, do("arrive", goal=place("station")), PAST, time=DayTime(ClockTime(8, 45), YESTERDAY)),
     "Maria arrived at the station yesterday at a quarter to eight.",
     "Maria ist gestern um Viertel vor acht am Bahnhof angekommen.", "玛丽亚昨天差一刻八点到达了火车站。"),
    # Fronted times, habits, weather
    (Clause(the("baker"), do("bake", a("bread")), time=HABITUAL_TIMES[1], time_first=True),
     "Every morning the baker bakes bread.", "Jeden Morgen backt der Bäcker Brot.", "每天早上那位面包师烤面包。"),
    (Clause(WE, do("swim"), time=SEASONS[1], time_first=True, place=place("beach")),
     "In summer we swim at the beach.", "Im Sommer schwimmen wir am Strand.", "夏天我们在海滩上游泳。"),
    (Clause(Expletive(), do("rain"), FUTURE, time=FUTURE_TIMES[1]),
     "It will rain tomorrow evening.", "Es wird morgen Abend regnen.", "明天晚上会下雨。"),
    (Clause(ANNA, do("pick up", HE), PAST, place=place("airport")),
     "Anna picked him up at the airport.", "Anna hat ihn am Flughafen abgeholt.", "安娜在机场接了他。"),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "english", "german", "chinese"), STATEMENTS, ids=[row[1] for row in STATEMENTS])
def test_statement(clause: Clause, english: str, german: str, chinese: str) -> None:
    assert realise(Statement(clause)).text == {"en": english, "de": german, "zh": chinese}


REQUESTS = [
    (do("close", the("door")), "Please close the door.", "Bitte machen Sie die Tür zu.", "请关上那扇门。"),
    (do("bring", a("flower", count=3), SPEAKER), "Please bring me three flowers.",
     "Bitte bringen Sie mir drei Blumen mit.",
     "请给我带来三朵花。"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "english", "german", "chinese"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_request(action: Action, english: str, german: str, chinese: str) -> None:
    assert realise(Request(action)).text == {"en": english, "de": german, "zh": chinese}
