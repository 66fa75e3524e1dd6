"""Words and letters that tell languages of one script apart. Data alone.

Function words and question words: a text has many of them, and a question some. Languages without a text search
configuration of their own stand here too, so that they are not taken for a neighbour.
"""

FUNCTION_WORDS = {
    "latn": {
        "af": "die van en in is nie het vir met wat op te aan as by word kan moet hierdie was",
        "az": "və bir bu ilə üçün olan daha nə kim harada necə hansı var deyil olaraq sonra",
        "ca": (
            "amb per els les del una que dels més als aquest aquesta és són també com però entre seva seu van què qui "
            "on quan quin quina quins quants quantes ha han pot té tenen no si o i a l d s n al pel sobre sense fins "
            "ser estat aquests"
        ),
        "cs": (
            "že se na je jako které který pro jsou byl bylo nebo jeho také podle ale jen při mezi však ve ze co kdo "
            "kde kdy proč jak jaký jaká jaké kolik tento tato toto být byla byly má mají může pouze musí bez před nad "
            "pod od do už i a v z k s o"
        ),
        "cy": "yn y mae a o i ar gan wedi am ei eu sydd fod neu",
        "da": (
            "og er det at af til en den for ikke på med som har han de blev efter eller også hvor mellem der jeg hvad "
            "hvem hvornår hvorfor hvilken hvilke hvilket hvordan var være kan skal deres sin sit denne dette disse "
            "under over ved om ud op så når hun vi du et"
        ),
        "de": (
            "der die und den von das mit ist des für dem sich nicht ein eine auf auch als wird nach bei sind was wie "
            "im zu an er sie es wer wo wann warum welche welcher welches welchen wurde wurden hat haben hatte sein "
            "seine seiner ihre ihr über aus zum zur oder wenn kann durch unter zwischen einem einen einer eines diese "
            "dieser dieses nur dass war waren um am vor viele viel wieviele werden keine mehr wir bitte"
        ),
        "en": (
            "the of and to in is that was for with are this from which have were been their not what who how did a an "
            "or by as on at it be has had can does when where why many much will would should there into about "
            "between his her its they he she you your we all any no other may must do one"
        ),
        "es": (
            "de la que el en los del las por con una para es se su al como más fue entre sus pero qué este también un "
            "y o a lo quién quiénes cuál cuáles cuándo dónde cómo cuánto cuántos cuántas cuánta sin sobre esta estos "
            "estas desde hasta cuando muy ha han fueron ser era tiene puede hay durante donde"
        ),
        "et": (
            "ja on ei see et mis oli kui ka selle aga või oma tema nende nagu kes siis välja pärast kus millal miks "
            "kuidas milline mitu olla need ning ainult peab saab pole"
        ),
        "eu": (
            "eta da ez du bat izan zen dira ere hau baina dute egin zuen bere dituzte batean beste zer nor non noiz "
            "zergatik nola zein zenbat"
        ),
        "fi": (
            "ja on ei että se oli joka hän ovat myös mutta kun tai sen niin kuin jotka ole hänen mukaan mikä mitä "
            "kuka missä milloin miksi miten kuinka mitkä minkä olla ollut tämä tämän nämä sekä jossa vain voi täytyy "
            "monta"
        ),
        "fr": (
            "de la le les et des en du une est pour que dans par qui au sur plus pas avec il sont ce aux cette à où "
            "quand comment pourquoi quel quelle quels quelles combien quoi ne se sa son ses leur leurs été être ces "
            "ont fut était comme entre vous nous votre peut doit l d qu n a-t-il ou si"
        ),
        "ga": "agus an na ar is le do go sé bhí ag as tá ina sin mar den don raibh cad cé cá conas cathain atá bhfuil",
        "hr": (
            "i je na se za koji da su u s od do po pri što tko gdje kada zašto kako koja koje koliko ili ovaj ova ovo "
            "biti bio bila bili ima može mora samo također ne nije kao između"
        ),
        "hu": (
            "a az és hogy nem is egy volt meg csak azt ez mint vagy de már még ezt azonban után között mi ki hol "
            "mikor miért hogyan melyik hány milyen lesz nincs kell lehet amely aki ami el"
        ),
        "id": (
            "yang dan di dengan untuk dari pada dalam adalah ini itu ke tidak oleh sebagai juga akan atau karena apa "
            "siapa mana kapan mengapa bagaimana berapa tersebut telah sudah bisa dapat harus lebih atas antara saat "
            "ketika seorang"
        ),
        "is": (
            "og í að er á sem til um við fyrir en ekki með það af var hann eða hvað hver hvar hvenær hvernig hvaða "
            "þetta þessi vera eru hefur"
        ),
        "it": (
            "di che la il e un per in è del della una con non le si dei nel sono anche alla gli come ha delle da i lo "
            "quale quali quando dove quanto quanti quante chi cosa perché al dell all nell dal dalla ed o suo sua "
            "questo questa questi stato stata era essere può su tra l d cui ai"
        ),
        "lt": (
            "ir yra kad su buvo iš kaip tai bet apie jo už nuo jų arba taip pat tik kas kur kada kodėl koks kokia "
            "kiek būti šis ši šie turi gali reikia prie per po dėl nėra į"
        ),
        "lv": (
            "un ir ar no uz par pie kas kur kad kāpēc kā kāds kāda cik vai bija būt šis šī tas tā nav tikai pēc pirms "
            "kurš var lai"
        ),
        "nl": (
            "de het een van en in is dat op te met voor zijn niet die aan er ook werd door bij wordt naar om wie wat "
            "waar wanneer waarom welke hoe hoeveel heeft hebben had was waren werden deze dit dan maar zich over uit "
            "tot tussen kan kunnen geen meer hun ze u moet uw"
        ),
        "no": (
            "og er det på til av en som for ikke med har at de ble etter eller også fra mellom være jeg hvor kan hva "
            "hvem når hvorfor hvilken hvilke hvilket hvordan var skal deres sin sitt denne dette disse under over ved "
            "om ut opp så hun vi du må et meg deg seg nå mer blir gjør vært hadde henne bare ingen alle din ditt før"
        ),
        "pl": (
            "i w na z się nie do że jest to jak przez od po ale są dla oraz był które który jego także co kto gdzie "
            "kiedy dlaczego jaki jaka jakie ile czy która tego tej tym tych być była było były ma mają może można lub "
            "tylko przed nad pod bez musi a"
        ),
        "pt": (
            "de a que o e do da em um para com não uma os no se na por mais as dos como mas foi ao das são também "
            "quem qual quais quando onde quanto quantos quantas quê à às pelo pela seu sua foram ser tem esta este ou "
            "até sobre entre já pode você"
        ),
        "ro": (
            "și în de la cu pe este care din nu pentru că mai au fost ca un prin sau dintre această sunt ce cine unde "
            "când cum câți câte cât al ale lui ei dacă era are poate trebuie fi o după acest"
        ),
        "sk": (
            "a v na je sa so z že nie ako pre od do pri čo kto kde kedy prečo aký aká aké koľko alebo tento táto toto "
            "byť bol bola boli sú má majú môže musí len po ktorý ktorá ktoré podľa však"
        ),
        "sl": (
            "in je na se za ki da so v z po od do pri kaj kdo kje kdaj zakaj kako kateri katera koliko ali ta to te "
            "biti bil bila bili ima lahko mora samo tudi pa ne ni kot med"
        ),
        "sq": "dhe në të e i me për nga që një është si nuk ka do u se më ky kjo",
        "sv": (
            "och i att det som en på är av för med den till inte om ett har de var vid eller från också hur vad vem "
            "när varför vilken vilka vilket blev vara kan ska deras sin sitt denna detta dessa mellan under över "
            "efter ut upp så hon vi jag du måste"
        ),
        "sw": "ya na wa kwa ni katika la za cha hii huu kuwa",
        "tr": (
            "ve bir bu için ile olarak da de en olan daha çok gibi sonra kadar ise ancak olduğu değil ne kim nerede "
            "nasıl neden hangi kaç mi mı mu mü var yok oldu tarafından göre önce veya ya hem nedir kimdir her"
        ),
        "vi": (
            "của và là có được trong cho một các không với những này người khi đã đến từ như gì ai đâu nào sao bao "
            "nhiêu bị ở tại về ra vào hay hoặc phải thì mà nếu năm ngày"
        ),
    },
    "cyrl": {
        "be": "і ў на з што як не да па для або гэта гэты быў была яны ён хто дзе калі",
        "bg": (
            "на се от за да че по като са при или който които беше след този между какво кой къде кога защо каква "
            "какви какъв колко ли е бил била било били има може трябва но тази това тези в с и си"
        ),
        "kk": "және мен үшін бұл деп бар бір болып осы ол қандай кім",
        "mk": (
            "и на во од за со се да е што кој каде кога зошто како која кои колку или но овој оваа ова овие не ги го "
            "ќе може мора беше"
        ),
        "ru": (
            "и в не на что с как по из за от был его это для или также была были при но она они до кто где когда "
            "почему какой какая какие какое каком каких сколько чем чего кем кого во ко со об о к у же ли только так "
            "эта эти этого этой есть быть который которая которые может их её мы вы если нет без над под перед между"
        ),
        "sr": (
            "је у се на да од са за који као су или али бити након које између би ко где када зашто како која колико "
            "овај ова ово био била били има може мора само не није до по"
        ),
        "uk": (
            "і в не на що з та як до у за від був його це для або також було при але вони після хто де коли чому який "
            "яка які яке скільки чи є бути були була він ми ви якщо немає без між під перед цей ця ці цього може й"
        ),
    },
    "arab": {
        "ar": (
            "في من على أن إلى التي عن مع هذا كان هذه الذي ما لا بين أو كانت كما بعد متى أين كيف لماذا كم هل أي ماذا "
            "هو هي قد تم لم لن كل بعض عند حتى إذا ثم و الذين ذلك تلك عام خلال منذ يجب"
        ),
        "ckb": "و لە بۆ بە کە ئەم ئەو",
        "fa": (
            "در به از که این را با است برای آن یک خود بود شد تا بر های می چه کجا چگونه چرا چند کدام آیا شده باید یا و "
            "هر او دارد کند"
        ),
        "ur": (
            "کے میں کی ہے اور سے کا کو اس نے پر ہیں کہ ایک یہ بھی تھا جو کیا کون کہاں کب کیسے کیوں کتنے کتنا تھے تھی "
            "گیا لیے جس ان"
        ),
    },
    "deva": {
        "hi": (
            "के में की है और से का को हैं पर इस एक यह ने भी था कि जो किया लिए क्या कौन कहाँ कहां कब कैसे क्यों कितने "
            "कितना कितनी किस किसने थे थी गया नहीं तक तो ही"
        ),
        "mr": (
            "आहे आणि या च्या होते की तो हा ही आहेत व होता त्या एक येथे मध्ये काय कोण कुठे केव्हा कसे का किती नाही हे ती ते"
        ),
        "ne": "छ र को मा का लाई पनि गर्न भएको छन् यो हो गरेको तथा एक कहाँ कहिले कसरी किन कति भयो थियो छैन तर",
    },
}

LETTERS = {
    "latn": {
        "az": "çəğıöşü",
        "ca": "àçèéíïòóúü",
        "cs": "áčďéěíňóřšťúůýž",
        "da": "æøå",
        "de": "äöüß",
        "es": "áéíóúüñ¿¡",
        "et": "õäöüšž",
        "fi": "äö",
        "fr": "àâçéèêëîïôùûœ",
        "ga": "áéíóú",
        "hr": "čćđšž",
        "hu": "áéíóöőúüű",
        "is": "áðéíóúýþæö",
        "it": "àèéìòù",
        "lt": "ąčęėįšųūž",
        "lv": "āčēģīķļņšūž",
        "nl": "ëïé",
        "no": "æøå",
        "pl": "ąćęłńóśźż",
        "pt": "ãõáéíóúâêôçà",
        "ro": "ăâîșțşţ",
        "sk": "áäčďéíĺľňóôŕšťúýž",
        "sl": "čšž",
        "sq": "ëç",
        "sv": "åäö",
        "tr": "çğıöşüâ",
        "vi": "ăâđêôơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹàáèéìíòóùúýãõ",
    },
    "cyrl": {
        "be": "ўіыэё",
        "bg": "ъщ",
        "kk": "қғңұүһәөыіэ",
        "mk": "ќѓѕљњџј",
        "ru": "ыэёъщ",
        "sr": "ђћљњџј",
        "uk": "їєґіщ",
    },
    "arab": {
        "ckb": "ێۆڕڵە",
        "fa": "پچژگ",
        "ur": "ٹڈڑےںہھ",
    },
}
"""Letters beside those that all languages of the script have."""
