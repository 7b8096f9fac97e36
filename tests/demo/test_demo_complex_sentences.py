"""Hand-written questions, subordinate clauses, relative clauses and coordination, and their alignments."""

import pytest

from translator.demo.generator import realise
from translator.demo.lexicon import adjective, means, name, noun, place, verb
from translator.demo.lexicon_adverbials import TOMORROW, YESTERDAY
from translator.demo.lexicon_entries import Gender
from translator.demo.lexicon_verbs import CAN, MUST, WANT
from translator.demo.syntax import (
    Action,
    Asked,
    Clause,
    Complex,
    Compound,
    Conjoined,
    Conjunction,
    Determiner,
    Expletive,
    Gap,
    Interrogative,
    Link,
    Named,
    NounPhrase,
    Occupation,
    Person,
    Position,
    Pronoun,
    Quality,
    Question,
    Sentence,
    Statement,
    Tense,
)

PROGRESSIVE, PAST, FUTURE = Tense.PROGRESSIVE, Tense.PAST, Tense.FUTURE
ANNA, PETER, MARIA = (Named(name(spelling)) for spelling in ("Anna", "Peter", "Maria"))
SPEAKER, HE, SHE, WE, THEY = (Pronoun(person) for person in Person)
WHO, WHAT, IT = Interrogative(True), Interrogative(False), Expletive()


def the(english: str, **parts: object) -> NounPhrase:
    return NounPhrase(noun(english), Determiner.DEFINITE, **parts)


def a(english: str, **parts: object) -> NounPhrase:
    return NounPhrase(noun(english), **parts)


def do(english: str, *parts: object, german: str = "", **named: object) -> Action:
    return Action(verb(english, german), *parts, **named)


def is_(english: str) -> Quality:
    return Quality(adjective(english))


SENTENCES: list[tuple[Sentence, str, str, str]] = [
    # Yes/no questions
    (Question(Clause(ANNA, do("read", the("letter")), PAST), Asked.NOTHING),
     "Did Anna read the letter?", "Hat Anna den Brief gelesen?", "安娜看了那封信吗？"),
    (Question(Clause(THEY, do("like", a("cat", plural=True))), Asked.NOTHING),
     "Do they like cats?", "Mögen sie Katzen?", "他们喜欢猫吗？"),
    (Question(Clause(PETER, is_("tired")), Asked.NOTHING), "Is Peter tired?", "Ist Peter müde?", "彼得累吗？"),
    (Question(Clause(MARIA, do("work"), PROGRESSIVE, place=place("library")), Asked.NOTHING),
     "Is Maria working in the library?", "Arbeitet Maria gerade in der Bibliothek?", "玛丽亚正在图书馆里工作吗？"),
    (Question(Clause(SPEAKER, do("open", the("window")), modal=CAN), Asked.NOTHING),
     "Can I open the window?", "Kann ich das Fenster aufmachen?", "我能打开那扇窗户吗？"),
    # Open questions
    (Question(Clause(WHO, do("bake", the("cake")), PAST), Asked.SUBJECT),
     "Who baked the cake?", "Wer hat den Kuchen gebacken?", "谁烤了那个蛋糕？"),
    (Question(Clause(ANNA, do("buy", WHAT), PAST), Asked.OBJECT),
     "What did Anna buy?", "Was hat Anna gekauft?", "安娜买了什么？"),
    (Question(Clause(PETER, do("call", WHO), PAST, time=YESTERDAY), Asked.OBJECT),
     "Whom did Peter call yesterday?", "Wen hat Peter gestern angerufen?", "彼得昨天给谁打电话了？"),
    (Question(Clause(the("nurse"), do("help", WHO), PAST), Asked.OBJECT),
     "Whom did the nurse help?", "Wem hat die Krankenschwester geholfen?", "那位护士帮助了谁？"),
    (Question(Clause(ANNA, do("live")), Asked.PLACE), "Where does Anna live?", "Wo wohnt Anna?", "安娜住在哪里？"),
    (Question(Clause(SHE, do("learn", a("Chinese")), PAST), Asked.PLACE),
     "Where did she learn Chinese?", "Wo hat sie Chinesisch gelernt?", "她在哪里学了中文？"),
    (Question(Clause(the("key"), Position(None)), Asked.PLACE),
     "Where is the key?", "Wo ist der Schlüssel?", "那把钥匙在哪里？"),
    (Question(Clause(THEY, do("go", german="gehen"), PAST), Asked.GOAL),
     "Where did they go?", "Wohin sind sie gegangen?", "他们去了哪里？"),
    (Question(Clause(MARIA, do("come back"), FUTURE), Asked.TIME),
     "When will Maria come back?", "Wann wird Maria zurückkommen?", "玛丽亚什么时候会回来？"),
    (Question(Clause(the("child"), do("cry"), PAST), Asked.REASON),
     "Why did the child cry?", "Warum hat das Kind geweint?", "那个孩子为什么哭了？"),
    # Subordinate clauses
    (Complex(Clause(ANNA, do("stay", goal=place("home")), PAST), Link.BECAUSE, Clause(SHE, is_("tired"), PAST)),
     "Anna stayed at home because she was tired.", "Anna ist zu Hause geblieben, weil sie müde war.",
     "安娜待在家里，因为她很累。"),
    (Complex(Clause(HE, do("buy", a("coat")), PAST), Link.BECAUSE, Clause(IT, do("snow"), PAST), True),
     "Because it snowed, he bought a coat.", "Weil es geschneit hat, hat er einen Mantel gekauft.",
     "因为下雪了，所以他买了一件大衣。"),
    (Complex(Clause(SHE, do("sing"), PAST), Link.ALTHOUGH, Clause(MARIA, is_("sad"), PAST), True),
     "Although Maria was sad, she sang.", "Obwohl Maria traurig war, hat sie gesungen.",
     "虽然玛丽亚很伤心，但是她唱歌了。"),
    (Complex(Clause(PETER, do("sleep"), PAST, negated=True), Link.ALTHOUGH, Clause(HE, is_("tired"), PAST)),
     "Peter did not sleep, although he was tired.", "Peter hat nicht geschlafen, obwohl er müde war.",
     "虽然彼得很累，但是他没睡觉。"),
    (Complex(Clause(ANNA, do("laugh"), PAST), Link.WHEN, Clause(SHE, do("see", the("monkey")), PAST)),
     "Anna laughed when she saw the monkey.", "Anna hat gelacht, als sie den Affen gesehen hat.",
     "安娜看见那只猴子的时候，她笑了。"),
    (Complex(Clause(HE, do("drink", a("tea"))), Link.WHEN, Clause(PETER, is_("thirsty")), True),
     "When Peter is thirsty, he drinks tea.", "Wenn Peter durstig ist, trinkt er Tee.", "彼得很渴的时候，他喝茶。"),
    (Complex(Clause(Pronoun(Person.THEY, feminine=True), do("smile"), PAST), Link.WHEN,
     Clause(Conjoined(ANNA, MARIA), do("come back"), PAST), True),
     "When Anna and Maria came back, they smiled.", "Als Anna und Maria zurückgekommen sind, haben sie gelächelt.",
     "安娜和玛丽亚回来的时候，她们微笑了。"),
    (Complex(Clause(ANNA, do("stay", goal=place("home")), FUTURE), Link.IF, Clause(IT, do("rain"),
     time=TOMORROW), True),
     "If it rains tomorrow, Anna will stay at home.", "Wenn es morgen regnet, wird Anna zu Hause bleiben.",
     "如果明天下雨，安娜就会待在家里。"),
    (Complex(Clause(SHE, do("call", SPEAKER), PAST), Link.BEFORE, Clause(ANNA, do("fly",
     goal=place("Paris")), PAST), True),
     "Before Anna flew to Paris, she called me.", "Bevor Anna nach Paris geflogen ist, hat sie mich angerufen.",
     "安娜坐飞机去巴黎之前，她给我打电话了。"),
    (Complex(Clause(ANNA, do("say")), Link.THAT, Clause(PETER, do("get up"), modal=MUST)),
     "Anna says that Peter has to get up.", "Anna sagt, dass Peter aufstehen muss.", "安娜说彼得必须起床。"),
    (Complex(Clause(WE, do("know", german="wissen"), PAST), Link.THAT, Clause(HE,
     Occupation(noun("pilot"), Gender.MASCULINE), PAST)),
     "We knew that he was a pilot.", "Wir wussten, dass er Pilot war.", "我们知道他是飞行员。"),
    (Complex(Clause(PETER, do("know", german="wissen"), negated=True), Link.WHETHER, Clause(MARIA,
     do("fall asleep"), PAST)),
     "Peter does not know whether Maria fell asleep.", "Peter weiß nicht, ob Maria eingeschlafen ist.",
     "彼得不知道玛丽亚是否睡着了。"),
    (Complex(Clause(MARIA, do("believe")), Link.THAT, Clause(ANNA, do("turn on", the("lamp")))),
     "Maria believes that Anna turns on the lamp.", "Maria glaubt, dass Anna die Lampe einschaltet.",
     "玛丽亚相信安娜打开那盏灯。"),
    # Relative clauses
    (Statement(Clause(the("man", relative=Clause(Gap(), do("buy", the("house")), PAST)), is_("rich"))),
     "The man who bought the house is rich.", "Der Mann, der das Haus gekauft hat, ist reich.",
     "那个买了那座房子的男人很富有。"),
    (Statement(Clause(the("book", relative=Clause(ANNA, do("write", Gap()), PAST)), is_("interesting"))),
     "The book that Anna wrote is interesting.", "Das Buch, das Anna geschrieben hat, ist interessant.",
     "安娜写的那本书很有意思。"),
    (Statement(Clause(PETER, do("find", the("bag", relative=Clause(SHE, do("lose", Gap()), PAST))), PAST)),
     "Peter found the bag that she lost.", "Peter hat die Tasche gefunden, die sie verloren hat.",
     "彼得找到了她弄丢的那个包。"),
    (Statement(Clause(SPEAKER, do("know", the("student", relative=Clause(MARIA, do("help", Gap()),
     PAST)), german="kennen"))),
     "I know the student whom Maria helped.", "Ich kenne den Studenten, dem Maria geholfen hat.",
     "我认识玛丽亚帮助的那位大学生。"),
    (Statement(Clause(the("woman", plural=True, relative=Clause(Gap(), do("live",
     goal=place("Vienna")))), is_("friendly"))),
     "The women who live in Vienna are friendly.", "Die Frauen, die in Wien wohnen, sind freundlich.",
     "那些住在维也纳的女人很友好。"),
    # Coordination
    (Compound(Clause(ANNA, do("read", a("novel")), PAST), Conjunction.AND, Clause(PETER, do("cook"), PAST)),
     "Anna read a novel and Peter cooked.", "Anna hat einen Roman gelesen und Peter hat gekocht.",
     "安娜看了一本小说，彼得做饭了。"),
    (Compound(Clause(WE, do("wait", MARIA), PAST), Conjunction.BUT, Clause(SHE, do("come back"), PAST, negated=True)),
     "We waited for Maria, but she did not come back.",
     "Wir haben auf Maria gewartet, aber sie ist nicht zurückgekommen.", "我们等了玛丽亚，但是她没回来。"),
    (Statement(Clause(HE, do("buy", Conjoined(a("bread"), a("milk"))), PAST, time=YESTERDAY, time_first=True)),
     "Yesterday he bought bread and milk.", "Gestern hat er Brot und Milch gekauft.", "昨天他买了面包和牛奶。"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "english", "german", "chinese"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_sentence(sentence: Sentence, english: str, german: str, chinese: str) -> None:
    assert realise(sentence).text == {"en": english, "de": german, "zh": chinese}


def links(sentence: Sentence, source: str, target: str) -> set[str]:
    """The alignment as readable pairs such as "dog-Hund"."""
    example = realise(sentence)
    pairs = example.alignment(source, target)
    assert pairs == sorted(set(pairs))
    return {f"{example.words[source][first]}-{example.words[target][second]}" for first, second in pairs}


def pairs(text: str) -> set[str]:
    return set(text.split())


# No word occurs twice in a sentence, so that words identify positions.
ALIGNMENTS = [
    # A separable verb: both German parts are aligned with both English parts
    (Statement(Clause(ANNA, do("turn on", the("lamp")))), "en", "de",
     "Anna-Anna turns-schaltet turns-ein on-schaltet on-ein the-die lamp-Lampe .-."),
    # A verb-final clause
    (Complex(Clause(ANNA, do("say")), Link.THAT, Clause(PETER, do("see", the("dog")), PAST)), "en", "de",
     "Anna-Anna says-sagt that-dass Peter-Peter saw-gesehen saw-hat the-den dog-Hund .-."),
    # A contraction realises the preposition and the article
    (Statement(Clause(HE, do("go", goal=place("station"), means=means("bus"), german="fahren"), PAST)), "en", "de",
     "He-Er went-ist went-gefahren to-zum the-zum station-Bahnhof by-mit bus-Bus .-."),
    # "kein" is both negation and article; "does" only carries the tense
    (Statement(Clause(PETER, do("have", a("car")), negated=True)), "en", "de",
     "Peter-Peter does-hat not-kein have-hat a-kein car-Auto .-."),
    # The genitive follows its noun in German
    (Statement(Clause(WE, do("wash", the("car", possessor=the("teacher"))), modal=WANT)), "en", "de",
     "We-Wir want-wollen to-wollen wash-waschen the-des teacher's-Lehrers car-Auto .-."),
    # A Chinese object relative clause precedes its noun; 的 is aligned with the relative pronoun
    (Statement(Clause(PETER, do("find", a("key", relative=Clause(SHE, do("lose", Gap()), PAST))), PAST)), "en", "zh",
     "Peter-彼 Peter-得 found-找 found-到 found-了 a-一 a-把 key-钥 key-匙 that-的 she-她 lost-弄 lost-丢 .-。"),
    # Measure words are aligned with the number, 在…里 with the preposition
    (Statement(Clause(ANNA, do("eat", a("apple", count=2)), PAST, place=place("kitchen"))), "en", "zh",
     "Anna-安 Anna-娜 ate-吃 ate-了 two-两 two-个 apples-苹 apples-果 in-在 in-里 kitchen-厨 kitchen-房 .-。"),
    # The clauses are reversed in Chinese, but the name still comes first and is aligned with the name
    (Complex(Clause(ANNA, do("laugh"), PAST), Link.WHEN, Clause(SHE, do("call", PETER), PAST)), "en", "zh",
     "Anna-安 Anna-娜 laughed-笑 laughed-了 when-的 when-时 when-候 she-她 "
     "called-打 called-电 called-话 Peter-彼 Peter-得 .-。"),
    (Statement(Clause(ANNA, do("get up"), PAST, time=YESTERDAY, time_first=True)), "de", "zh",
     "Gestern-昨 Gestern-天 ist-了 Anna-安 Anna-娜 aufgestanden-起 aufgestanden-床 .-。"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "source", "target", "expected"), ALIGNMENTS)
def test_alignment(sentence: Sentence, source: str, target: str, expected: str) -> None:
    assert links(sentence, source, target) == pairs(expected)
    reverse = {"-".join(reversed(link.split("-"))) for link in links(sentence, target, source)}
    assert reverse == pairs(expected)


def test_alignment_positions() -> None:
    example = realise(SENTENCES[3][0])  # Is Maria working in the library? / Arbeitet Maria gerade in der Bibliothek?
    assert example.alignment("en", "de") == [(0, 0), (0, 2), (1, 1), (2, 0), (3, 3), (4, 4), (5, 5), (6, 6)]
    assert example.alignment("de", "de")[0] == (0, 0)
    with pytest.raises(ValueError, match="target='fr'"):
        example.alignment("en", "fr")
