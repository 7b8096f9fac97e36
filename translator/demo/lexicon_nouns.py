"""Nouns and names."""

from translator.demo.lexicon_entries import Gender, Name, Noun

_GENDERS = {"m": Gender.MASCULINE, "f": Gender.FEMININE, "n": Gender.NEUTER}


def _profession(
    english: str,
    german: str,
    plural: str,
    feminine: str,
    chinese: str,
    *kinds: str,
    oblique: str = "",
    genitive: str = "",
) -> Noun:
    return Noun(
        english,
        english + "s",
        german,
        Gender.MASCULINE,
        plural,
        chinese,
        "位",
        ("person", "adult", "profession", *kinds),
        german_oblique=oblique,
        german_genitive=genitive,
        german_feminine=feminine,
    )


def _countable(
    english: str,
    english_plural: str,
    german: str,
    gender: str,
    german_plural: str,
    chinese: str,
    measure: str,
    *kinds: str,
    oblique: str = "",
    genitive: str = "",
) -> Noun:
    return Noun(
        english,
        english_plural,
        german,
        _GENDERS[gender],
        german_plural,
        chinese,
        measure,
        kinds,
        german_oblique=oblique,
        german_genitive=genitive,
    )


def _mass(english: str, german: str, gender: str, chinese: str, *kinds: str, container: str = "") -> Noun:
    return Noun(english, "", german, _GENDERS[gender], "", chinese, "", kinds, mass=True, container=container)


PROFESSIONS: tuple[Noun, ...] = (
    _profession("doctor", "Arzt", "Ärzte", "Ärztin", "医生", "associate", genitive="Arztes"),
    _profession("teacher", "Lehrer", "Lehrer", "Lehrerin", "老师", "associate"),
    _profession("student", "Student", "Studenten", "Studentin", "大学生", oblique="Studenten"),
    _profession("lawyer", "Anwalt", "Anwälte", "Anwältin", "律师", "associate"),
    _profession("engineer", "Ingenieur", "Ingenieure", "Ingenieurin", "工程师"),
    _profession("police officer", "Polizist", "Polizisten", "Polizistin", "警察", oblique="Polizisten"),
    _profession("baker", "Bäcker", "Bäcker", "Bäckerin", "面包师"),
    _profession("journalist", "Journalist", "Journalisten", "Journalistin", "记者", oblique="Journalisten"),
    _profession("farmer", "Bauer", "Bauern", "Bäuerin", "农民", oblique="Bauern"),
    _profession("artist", "Künstler", "Künstler", "Künstlerin", "艺术家"),
    _profession("musician", "Musiker", "Musiker", "Musikerin", "音乐家"),
    _profession("writer", "Schriftsteller", "Schriftsteller", "Schriftstellerin", "作家"),
    _profession("scientist", "Wissenschaftler", "Wissenschaftler", "Wissenschaftlerin", "科学家"),
    _profession("architect", "Architekt", "Architekten", "Architektin", "建筑师", oblique="Architekten"),
    _profession("pilot", "Pilot", "Piloten", "Pilotin", "飞行员", oblique="Piloten"),
    _profession("dentist", "Zahnarzt", "Zahnärzte", "Zahnärztin", "牙医", "associate", genitive="Zahnarztes"),
    _profession("photographer", "Fotograf", "Fotografen", "Fotografin", "摄影师", oblique="Fotografen"),
    _profession("gardener", "Gärtner", "Gärtner", "Gärtnerin", "园丁", "associate"),
)

PEOPLE: tuple[Noun, ...] = (
    *PROFESSIONS,
    _countable("nurse", "nurses", "Krankenschwester", "f", "Krankenschwestern", "护士", "位", "person", "adult"),
    _countable("man", "men", "Mann", "m", "Männer", "男人", "个", "person", "adult", genitive="Mannes"),
    _countable("woman", "women", "Frau", "f", "Frauen", "女人", "个", "person", "adult"),
    _countable("boy", "boys", "Junge", "m", "Jungen", "男孩", "个", "person", oblique="Jungen"),
    _countable("girl", "girls", "Mädchen", "n", "Mädchen", "女孩", "个", "person"),
    _countable("child", "children", "Kind", "n", "Kinder", "孩子", "个", "person", genitive="Kindes"),
    _countable(
        "neighbor",
        "neighbors",
        "Nachbar",
        "m",
        "Nachbarn",
        "邻居",
        "位",
        "person",
        "adult",
        "associate",
        oblique="Nachbarn",
    ),
    _countable(
        "guest", "guests", "Gast", "m", "Gäste", "客人", "位", "person", "adult", "associate", genitive="Gastes"
    ),
    _countable(
        "tourist", "tourists", "Tourist", "m", "Touristen", "游客", "位", "person", "adult", oblique="Touristen"
    ),
)

# Family members, which always have a possessor.
RELATIVES: tuple[Noun, ...] = (
    _countable("mother", "mothers", "Mutter", "f", "Mütter", "妈妈", "位", "relative"),
    _countable("father", "fathers", "Vater", "m", "Väter", "爸爸", "位", "relative"),
    _countable("son", "sons", "Sohn", "m", "Söhne", "儿子", "个", "relative", genitive="Sohnes"),
    _countable("daughter", "daughters", "Tochter", "f", "Töchter", "女儿", "个", "relative"),
    _countable("grandfather", "grandfathers", "Großvater", "m", "Großväter", "爷爷", "位", "relative"),
    _countable("grandmother", "grandmothers", "Großmutter", "f", "Großmütter", "奶奶", "位", "relative"),
)

ANIMALS: tuple[Noun, ...] = (
    _countable("dog", "dogs", "Hund", "m", "Hunde", "狗", "只", "animal", "pet"),
    _countable("cat", "cats", "Katze", "f", "Katzen", "猫", "只", "animal", "pet"),
    _countable("rabbit", "rabbits", "Kaninchen", "n", "Kaninchen", "兔子", "只", "animal", "pet"),
    _countable("bird", "birds", "Vogel", "m", "Vögel", "鸟", "只", "animal", "pet"),
    _countable("horse", "horses", "Pferd", "n", "Pferde", "马", "匹", "animal"),
    _countable("cow", "cows", "Kuh", "f", "Kühe", "牛", "头", "animal"),
    _countable("duck", "ducks", "Ente", "f", "Enten", "鸭子", "只", "animal"),
    _countable("pig", "pigs", "Schwein", "n", "Schweine", "猪", "头", "animal"),
    _countable("monkey", "monkeys", "Affe", "m", "Affen", "猴子", "只", "animal", "wild", oblique="Affen"),
    _countable(
        "elephant", "elephants", "Elefant", "m", "Elefanten", "大象", "头", "animal", "wild", oblique="Elefanten"
    ),
    _countable("bear", "bears", "Bär", "m", "Bären", "熊", "只", "animal", "wild", oblique="Bären"),
)

FOOD: tuple[Noun, ...] = (
    _countable("apple", "apples", "Apfel", "m", "Äpfel", "苹果", "个", "food", "fruit"),
    _countable("banana", "bananas", "Banane", "f", "Bananen", "香蕉", "根", "food", "fruit"),
    _countable("orange", "oranges", "Orange", "f", "Orangen", "橙子", "个", "food", "fruit"),
    _countable("pear", "pears", "Birne", "f", "Birnen", "梨", "个", "food", "fruit"),
    _countable("egg", "eggs", "Ei", "n", "Eier", "鸡蛋", "个", "food"),
    _countable("cake", "cakes", "Kuchen", "m", "Kuchen", "蛋糕", "个", "food", "pastry", "dish"),
    _countable("pizza", "pizzas", "Pizza", "f", "Pizzas", "比萨饼", "个", "food", "pastry", "dish"),
    _countable("tomato", "tomatoes", "Tomate", "f", "Tomaten", "西红柿", "个", "food", "vegetable"),
    _countable("carrot", "carrots", "Karotte", "f", "Karotten", "胡萝卜", "根", "food", "vegetable"),
    _countable("potato", "potatoes", "Kartoffel", "f", "Kartoffeln", "土豆", "个", "food", "vegetable", "boiled"),
    _mass("bread", "Brot", "n", "面包", "food", "staple", "pastry"),
    _mass("rice", "Reis", "m", "米饭", "food", "boiled", "dish"),
    _mass("soup", "Suppe", "f", "汤", "food", "boiled", "dish"),
    _mass("cheese", "Käse", "m", "奶酪", "food", "staple"),
    _mass("meat", "Fleisch", "n", "肉", "food", "staple"),
    _mass("fish", "Fisch", "m", "鱼", "food", "staple", "dish"),
    _mass("chocolate", "Schokolade", "f", "巧克力", "food"),
    _mass("coffee", "Kaffee", "m", "咖啡", "drink", "hot drink", container="cup"),
    _mass("tea", "Tee", "m", "茶", "drink", "hot drink", container="cup"),
    _mass("water", "Wasser", "n", "水", "drink", container="glass"),
    _mass("milk", "Milch", "f", "牛奶", "drink", container="glass"),
    _mass("juice", "Saft", "m", "果汁", "drink", container="glass"),
    _mass("beer", "Bier", "n", "啤酒", "drink", container="bottle"),
    _mass("wine", "Wein", "m", "葡萄酒", "drink", container="bottle"),
)

READING: tuple[Noun, ...] = (
    _countable("book", "books", "Buch", "n", "Bücher", "书", "本", "reading", "text", "flat", "gift"),
    _countable("newspaper", "newspapers", "Zeitung", "f", "Zeitungen", "报纸", "份", "reading", "flat", "paper"),
    _countable(
        "magazine", "magazines", "Zeitschrift", "f", "Zeitschriften", "杂志", "本", "reading", "flat", "gift", "paper"
    ),
    _countable("novel", "novels", "Roman", "m", "Romane", "小说", "本", "reading", "text", "gift"),
    _countable("letter", "letters", "Brief", "m", "Briefe", "信", "封", "reading", "text", "flat", "mail", "paper"),
    _countable(
        "postcard", "postcards", "Postkarte", "f", "Postkarten", "明信片", "张", "text", "flat", "mail", "paper"
    ),
    _countable("poem", "poems", "Gedicht", "n", "Gedichte", "诗", "首", "reading", "text"),
    _countable("report", "reports", "Bericht", "m", "Berichte", "报告", "份", "reading", "text", "mail"),
    _countable("article", "articles", "Artikel", "m", "Artikel", "文章", "篇", "reading", "text"),
    _countable("story", "stories", "Geschichte", "f", "Geschichten", "故事", "个", "story"),
    _countable("question", "questions", "Frage", "f", "Fragen", "问题", "个", "question"),
    _countable("photo", "photos", "Foto", "n", "Fotos", "照片", "张", "picture", "flat", "mail", "paper"),
    _countable("picture", "pictures", "Bild", "n", "Bilder", "画", "幅", "picture", "painting"),
    _countable("film", "films", "Film", "m", "Filme", "电影", "部", "film"),
)

THINGS: tuple[Noun, ...] = (
    _countable("coat", "coats", "Mantel", "m", "Mäntel", "大衣", "件", "clothes", "worn"),
    _countable("shirt", "shirts", "Hemd", "n", "Hemden", "衬衫", "件", "clothes", "worn"),
    _countable("dress", "dresses", "Kleid", "n", "Kleider", "连衣裙", "条", "clothes"),
    _countable("hat", "hats", "Hut", "m", "Hüte", "帽子", "顶", "clothes"),
    _countable("jacket", "jackets", "Jacke", "f", "Jacken", "夹克", "件", "clothes", "worn"),
    _countable("sweater", "sweaters", "Pullover", "m", "Pullover", "毛衣", "件", "clothes", "worn"),
    _countable("scarf", "scarves", "Schal", "m", "Schals", "围巾", "条", "clothes", "gift"),
    _countable("car", "cars", "Auto", "n", "Autos", "汽车", "辆", "vehicle"),
    _countable("bicycle", "bicycles", "Fahrrad", "n", "Fahrräder", "自行车", "辆", "vehicle"),
    _countable("motorcycle", "motorcycles", "Motorrad", "n", "Motorräder", "摩托车", "辆", "vehicle"),
    _countable("truck", "trucks", "Lastwagen", "m", "Lastwagen", "卡车", "辆", "vehicle"),
    _countable("table", "tables", "Tisch", "m", "Tische", "桌子", "张", "furniture"),
    _countable("chair", "chairs", "Stuhl", "m", "Stühle", "椅子", "把", "furniture"),
    _countable("bed", "beds", "Bett", "n", "Betten", "床", "张", "furniture"),
    _countable("sofa", "sofas", "Sofa", "n", "Sofas", "沙发", "张", "furniture"),
    _countable("cupboard", "cupboards", "Schrank", "m", "Schränke", "柜子", "个", "furniture"),
    _countable("lamp", "lamps", "Lampe", "f", "Lampen", "灯", "盏", "switch"),
    _countable("computer", "computers", "Computer", "m", "Computer", "电脑", "台", "device", "switch"),
    _countable("radio", "radios", "Radio", "n", "Radios", "收音机", "台", "device", "switch"),
    _countable("television", "televisions", "Fernseher", "m", "Fernseher", "电视机", "台", "device", "switch"),
    _countable("camera", "cameras", "Kamera", "f", "Kameras", "照相机", "台", "device", "flat", "gift"),
    _countable("clock", "clocks", "Uhr", "f", "Uhren", "钟", "座", "device"),
    _countable("key", "keys", "Schlüssel", "m", "Schlüssel", "钥匙", "把", "small", "flat"),
    _countable("umbrella", "umbrellas", "Regenschirm", "m", "Regenschirme", "雨伞", "把", "small"),
    _countable("pencil", "pencils", "Bleistift", "m", "Bleistifte", "铅笔", "支", "small", "flat"),
    _countable("ring", "rings", "Ring", "m", "Ringe", "戒指", "枚", "small", "gift"),
    _countable("bag", "bags", "Tasche", "f", "Taschen", "包", "个", "small"),
    _countable("guitar", "guitars", "Gitarre", "f", "Gitarren", "吉他", "把", "small", "gift"),
    _countable("flower", "flowers", "Blume", "f", "Blumen", "花", "朵", "gift", "flower"),
    _countable("ticket", "tickets", "Fahrkarte", "f", "Fahrkarten", "车票", "张", "small", "flat", "paper"),
    _countable("cup", "cups", "Tasse", "f", "Tassen", "杯子", "个", "dishes"),
    _countable("glass", "glasses", "Glas", "n", "Gläser", "玻璃杯", "个", "dishes"),
    _countable("plate", "plates", "Teller", "m", "Teller", "盘子", "个", "dishes"),
    _countable("door", "doors", "Tür", "f", "Türen", "门", "扇", "opening"),
    _countable("window", "windows", "Fenster", "n", "Fenster", "窗户", "扇", "opening"),
    _countable("house", "houses", "Haus", "n", "Häuser", "房子", "座", "building"),
    _countable("apartment", "apartments", "Wohnung", "f", "Wohnungen", "公寓", "套", "building"),
    _countable("room", "rooms", "Zimmer", "n", "Zimmer", "房间", "个", "room"),
)

LANGUAGE_NAMES: tuple[Noun, ...] = (
    _mass("German", "Deutsch", "n", "德语", "language"),
    _mass("English", "Englisch", "n", "英语", "language"),
    _mass("Chinese", "Chinesisch", "n", "中文", "language"),
    _mass("French", "Französisch", "n", "法语", "language"),
    _mass("Spanish", "Spanisch", "n", "西班牙语", "language"),
    _mass("Italian", "Italienisch", "n", "意大利语", "language"),
)

# Containers in measure phrases such as "two cups of coffee"; in Chinese they are measure words.
CONTAINERS: tuple[Noun, ...] = (
    _countable("cup", "cups", "Tasse", "f", "Tassen", "", "杯", "container"),
    _countable("glass", "glasses", "Glas", "n", "Gläser", "", "杯", "container"),
    _countable("bottle", "bottles", "Flasche", "f", "Flaschen", "", "瓶", "container"),
)


def _names(gender: Gender, *pairs: tuple[str, str]) -> tuple[Name, ...]:
    return tuple(Name(spelling, spelling, chinese, gender) for spelling, chinese in pairs)


# No name ends in s, x or z: its German genitive would need an apostrophe.
NAMES: tuple[Name, ...] = _names(
    Gender.FEMININE,
    ("Anna", "安娜"),
    ("Maria", "玛丽亚"),
    ("Julia", "朱莉娅"),
    ("Laura", "劳拉"),
    ("Lena", "莱娜"),
    ("Emma", "艾玛"),
    ("Sophie", "索菲"),
    ("Lisa", "丽莎"),
    ("Clara", "克拉拉"),
    ("Eva", "伊娃"),
    ("Nina", "尼娜"),
    ("Sarah", "萨拉"),
    ("Paula", "葆拉"),
) + _names(
    Gender.MASCULINE,
    ("Peter", "彼得"),
    ("Paul", "保罗"),
    ("David", "大卫"),
    ("Martin", "马丁"),
    ("Daniel", "丹尼尔"),
    ("Michael", "迈克尔"),
    ("Robert", "罗伯特"),
    ("Simon", "西蒙"),
    ("Leon", "莱昂"),
    ("Oliver", "奥利弗"),
    ("Oskar", "奥斯卡"),
    ("Erik", "埃里克"),
    ("Tom", "汤姆"),
)

COMMON_NOUNS: tuple[Noun, ...] = (*PEOPLE, *RELATIVES, *ANIMALS, *FOOD, *READING, *THINGS, *LANGUAGE_NAMES)
