"""Abbreviations of each language: words after which a full stop need not end the sentence.

To add a word, write it without its last full stop into the line of its language. A word in small letters stands for
the capitalised one too; one with a capital stands only for itself ("Sen." but not "sen."); "-str" is the end of a
longer word. A word may mean something else in another language: a text is read with the words of its own language.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache


@dataclass(frozen=True)
class Abbreviations:
    """The abbreviations of one language, and the words that often begin its sentences."""

    never_end: frozenset[str]  # never the last word of a sentence: "Mr.", "e.g."
    before_numbers: frozenset[str]  # not the last word of a sentence where a number follows: "p. 5"
    may_end: frozenset[str]  # the last word of a sentence only where a starter follows: "etc."
    starters: frozenset[str]  # words that begin a sentence far more often than they follow an abbreviation inside one
    ordinals: bool  # "3." is "third"
    elides: bool  # "l'art. 3": what stands before an apostrophe is another word
    guess: bool = False  # the language is not known: the abbreviations of `likely` languages count too


def _words(
    never_end: str = "",
    before_numbers: str = "",
    may_end: str = "",
    starters: str = "",
    ordinals: bool = False,
    elides: bool = False,
) -> Abbreviations:
    """Makes the lists of a language from words separated by spaces."""
    never, numbers, may, begin = (frozenset(words.split()) for words in (never_end, before_numbers, may_end, starters))
    return Abbreviations(never, numbers | {"n°", "N°", "nº", "Nº", "№"}, may, begin, ordinals, elides)


BY_LANGUAGE = {
    "en": _words(
        """mr mrs ms mx messrs mmes dr drs prof Rev Fr Hon Gen Brig Col Maj Capt Cmdr Cdr Lt Sgt Cpl Pvt Adm Gov Sen
        Rep Sens Reps Pres Supt Insp Det Amb Atty St Ste Mt Mts Ft Pt e.g i.e eg ie cf viz approx vs ca resp esp incl
        excl Bros Msgr MR MRS MS DR PROF eds Assoc""",
        """no nos nr num art arts fig figs p pp pg pgs par para vol vols ch chap sec sect sects eq eqs ex exs pl ver v
        op ed bk pt pts col ref refs tel ext fl jan feb apr jun jul aug sep sept oct nov dec tue tues thu thur thurs
        fri Mon Wed Sat Sun Mar max min rs""",
        """etc inc ltd co corp llc plc jr sr al ph.d m.d b.a m.a b.sc m.sc a.m p.m u.s u.s.a u.k e.u u.n d.c esq min
        avg dept univ assn est st ave blvd rd hwy bldg apt ste hr hrs lb lbs oz sq yr yrs mos pct jan feb apr jun jul
        aug sep sept oct nov dec Mar Calif Mass Conn Fla Ariz Colo Ala Minn Wis Tex Tenn Okla Penn Va Ga Ill Ind Ore
        Wash Mich Nev Neb Kan Ky Md Mo Mont""",
        """the a an this that these those he she it they we you i his her its their our my your there here then but
        and so if when while after before in on at for from with as although however what who why how where which not
        no yes did does do is are was were will would can could should has have had one some many most all both each
        another two three today yesterday tomorrow now since because until despite during under over by to let please
        according even only it's i'm he's she's that's there's don't let's""",
    ),
    "de": _words(
        """Hr Hrn Fr Frl dr Prof Dipl Ing habil Mag Dres St z.b zb d.h dh u.a u.ä o.ä u.u i.d.r s.o s.u m.e n.b v.a
        a.d i.a i.e i.s o.g u.v.a vgl bzw sog ggf evtl inkl exkl einschl ausschl zzgl bspw insb insbes ca geb gest
        verh verw gesch röm griech lat engl franz dt österr schweiz amerik ital span russ hl Hl ehem allg bes gen jew
        vorm nachm techn phil med jur theol rer nat pol Univ.-Prof z d betr bzgl gem lt zz zzt vs Gebr Frhr Gf Kl""",
        """nr nrn art abb abs bd bde kap s ss ziff tab tel anm aufl ausg bl fig lfd pos rn rz sp zit § jan jän feb
        febr mär apr jun jul aug sep sept okt nov dez p pp vol mind max min str -str Jh St Std sek t""",
        """usw usf etc u.s.w co inc ltd corp e.v a.d a.m i.r v.chr n.chr chr jh jhd jhdt jhs str -str pl mio mrd tsd std
        min sek m.b.h jr sen jun ff f al o.j o.o jan jän feb febr apr aug sept okt nov dez hbf abt verf hrsg hg red
        übers Mo Di Mi Do Sa So""",
        """der die das ein eine einer eines einem den dem er sie es wir ihr ich sein seine ihre unser dies diese
        dieser dieses diesem dort hier da dann aber und oder wenn als nach vor im in am an auf für mit wie was wer wo
        warum nicht nur doch auch so man bei beim zu zum zur von vom aus durch um über unter seit während trotz obwohl
        weil dass denn damit dabei dazu danach daher deshalb jedoch heute gestern morgen jetzt nun bereits schon noch
        alle viele einige mehr zwei drei ist sind war waren hat haben kann können wird werden bitte ob welche
        weitere""",
        ordinals=True,
    ),
    "fr": _words(
        """M MM mme mmes mlle mlles Mgr Me Mes dr drs Pr Prof Vve Sr St Ste Sts p.ex c.-à-d c-à-d cad cf env apr av ex
        i.e resp éd adj spéc Gal Cdt Cne Col Lt Adj bd boul fg Dr vs Mr""",
        """no nos nº n° num art arts fig figs p pp pg vol t chap ch sect éq tab tél al alin l v liv ann ex f fol janv
        févr fév avr juil sept oct nov déc env éd""",
        """etc cie sté inc ltd co corp s.a s.a.r.l j.-c av.j.-c apr.j.-c jr al min max dép univ coll suiv hab bd av st
        m.à.j janv févr juil oct nov déc""",
        """le la les l un une des du de il elle on nous vous ils elles je tu ce c cet cette ces ceci cela ça son sa
        ses leur leurs notre mais et ou si quand après avant dans en au aux à pour par avec sans sous sur comme puis
        alors ainsi donc car or ne n pas plus qui que qu quoi où comment pourquoi y s d j lorsque depuis pendant selon
        malgré toutefois cependant deux trois tout toute tous chaque aucun aujourd hier demain est sont était a ont
        voici""",
        elides=True,
    ),
    "es": _words(
        """Sr Sra Srta Sres Sras Srtas D Da Dª Dn Dña Dr Dra Dres Dras Lic Ing Arq Prof Profa Gral Cnel Cap Tte Sgto
        Mons Pbro Fr Hno Hna Sto Sta Ud Uds Vd Vds Excmo Excma Ilmo Ilma Rvdo p.ej ej v.gr cf cfr aprox Av Avda Avd
        Pza Pl dpto depto Gob Pdte Pdta Ma Mª Dip Rep vs EE St Mt Mr""",
        """nº núm núms n art fig figs p pp pg pág págs vol vols cap caps t tít secc ap apdo tel tfno ed v vv c f fol
        ene feb abr jun jul ago sep sept set oct nov dic arts n.º No párr Lun Mar Mié Jue Vie Sáb Dom""",
        """etc cía co inc ltd corp s.a s.l s.a.u s.l.u ee.uu ee uu jr hnos a.c d.c a.m p.m a.j.c d.j.c máx mín aprox
        admón dcha izda izq hab al ss ud uds vd vds ed trad""",
        """el la los las lo un una unos unas él ella ellos ellas yo tú nosotros usted ustedes este esta esto estos
        estas ese esa esos esas aquel su sus mi mis nuestro pero y e o si cuando después antes en de del al a para por
        con sin sobre como cómo qué quién dónde no sí se le les me te nos que ya también tras durante desde entre
        según aunque además así entonces luego hoy ayer mañana fue es son era está están hay ha han muchos todo todos
        cada dos""",
    ),
    "it": _words(
        """sig sigg sig.ra sig.na dott dott.ssa dr dr.ssa prof prof.ssa avv arch ing geom rag on sen spett egr gent
        gent.mo gent.ma ill.mo mons S Ss Sta Sto Gen Col Cap Magg Ten Serg p.es ad.es es cfr cf ca vs cosid cd sedic
        amm pres cav comm Card F.lli f.lli dir""",
        """nn n nr num art artt fig figg p pp pag pagg vol voll cap capp t tit tab sez sec par co lett l tel d.l d.lgs
        d.m d.p.r dpr gen feb mar apr mag giu lug ago set sett ott nov dic v vv all""",
        """ecc etc s.p.a s.r.l s.n.c s.a.s inc ltd co corp a.c d.c jr al ss sgg segg max min feb apr ago ott nov dic
        u.s a.d r.d SpA""",
        """il lo la i gli le l un uno una egli ella lui lei essi loro io noi voi questo questa questi queste quello
        quella quelli ma e ed o se quando dopo prima nel nella nei nelle in di del della dei delle da dal dalla a al
        alla ai per con come su sul sulla tra fra non che chi cosa dove perché anche già più si ci ne mi ti è sono era
        erano ha hanno secondo inoltre tuttavia infatti così poi oggi ieri domani tutti tutto ogni due c cui qui""",
        elides=True,
    ),
    "pt": _words(
        """Sr Sra Srta Sres Srs Sras D Dr Dra Drs Dras Prof Profa Profª Eng Engª Arq Gen Cel Cap Maj Ten Sgt Mons Pe
        Fr Exmo Exma Ilmo Ilma Sto Sta V.Exa p.ex ex cf aprox Av R Rod Trav Pça Pç Al Dep Gov Min Pres Des vs séc""",
        """nº núm n art arts fig figs p pp pg pgs pág págs vol vols cap caps t tít sec tel ed v fl fls inc al jan fev
        abr mai jun jul ago set out nov dez séc n.º""",
        """etc cia ltda inc ltd co corp s.a jr a.c d.c a.m p.m e.u.a máx mín apto hab al fls jan fev abr jun jul ago
        out nov dez""",
        """o a os as um uma uns umas ele ela eles elas eu nós você vocês este esta isto estes estas esse essa isso
        esses essas aquele seu sua seus suas meu minha mas e ou se quando depois antes em no na nos nas de do da dos
        das ao à para por pelo pela com sem sobre como que quem onde não sim já também após durante desde entre
        segundo embora além assim então hoje ontem amanhã foi é são era está estão há tem muitos todo todos cada dois
        duas""",
    ),
    "nl": _words(
        """dhr mevr mej mw mr mrs drs dr ir ing prof ds jhr St bijv bv m.a.w d.w.z dwz z.g.n zgn o.a oa i.p.v t.o.v
        t.a.v m.b.t i.v.m n.a.v o.l.v a.h.w i.c i.e i.h.b m.n o.m resp vgl vs ca evt incl excl jl a.u.b v.a v.d gen
        kol kapt lt mgr""",
        """no nr nrs art afb blz p pp pag par fig tab hfdst hoofdst h dl vol tel jan feb febr mrt apr jun jul aug sep
        sept okt nov dec ca afd bl st""",
        """enz etc e.d e.a n.v b.v v.o.f inc ltd co corp jr sr al a.s jl v.chr n.chr chr a.m p.m st gld fl hst jan feb
        febr mrt apr aug sept okt nov dec str -str d.m.v""",
        """de het een hij zij ze wij we ik jij je u jullie dit dat deze die er hier daar dan maar en of als toen na
        voor in op met om bij van uit door over onder tot tegen naar aan te zo ook nog niet geen wat wie waar hoe
        waarom wanneer omdat hoewel terwijl volgens sinds tijdens zijn haar hun ons mijn is was waren heeft had kan
        zal wordt werd vandaag gisteren morgen nu daarom echter alle veel elke twee""",
    ),
    "sv": _words(
        """hr fr dr prof doc lic kand t.ex tex bl.a d.v.s dvs s.k sk fr.o.m t.o.m m.a.o resp jfr ca ev inkl exkl f.d
        fd St S:t S:ta f.n p.g.a pga p.gr.a vs ang enl urspr""",
        """nr no s sid kap kl fig tab art bd st mom tel p jan feb febr mar apr jun jul aug sep sept okt nov dec ca
        prop vol""",
        """etc osv o.s.v m.m mm m.fl mfl o.d dyl o.dyl e.d f.kr e.kr kr st milj mkr tkr jr sr inc ltd co corp al m.h
        t.h forts uppl utg""",
        """den det de en ett han hon vi jag du ni man detta denna dessa här där då men och eller om när efter före
        innan i på för med av till från som vad vem varför hur var inte också så under över vid utan mellan enligt
        sedan trots eftersom medan att sin hans hennes deras vår min är har hade kan ska skall blir blev idag igår nu
        alla många varje två""",
    ),
    "da": _words(
        """hr fr frk dr prof cand mag stud lic ing f.eks feks fx bl.a d.v.s dvs s.k såk ca evt inkl ekskl jf jfr m.h.t
        mht pga p.g.a iflg ifm ift vedr vha vs Sct Skt nuv tidl hhv h.h.v resp kgl p.t afd dir d St phil dr.phil""",
        """nr no s sd kap kl fig tab art stk bd tlf tel p jan feb febr mar apr jun jul aug sep sept okt nov dec ca
        §""",
        """etc osv o.s.v m.m mv m.v m.fl mfl o.l o.lign lign f.kr e.kr kr mio jr sr inc ltd co corp al pct stk a.s udg
        m.a""",
        """den det de en et han hun vi jeg du i man dette denne disse her der da men og eller hvis når efter før på
        for med af til fra som hvad hvem hvorfor hvordan hvor ikke også så under over ved uden mellem ifølge siden
        trods fordi mens at sin hans hendes deres vores min er har havde kan skal vil bliver blev nu alle mange hver
        to""",
        ordinals=True,
    ),
    "no": _words(
        """hr fr frk dr prof cand mag stud f.eks feks bl.a d.v.s dvs s.k såk ca evt inkl ekskl jf jfr mht m.h.t pga
        p.g.a ifm ift vedr vha vs St hhv resp kgl p.t avd dir tidl d iflg""",
        "nr no s kap kl fig tab art bd tlf tel p pkt jan feb febr mar apr jun jul aug sep sept okt nov des ca § str",
        """etc osv o.s.v m.m mm m.v mv m.fl mfl o.l e.l f.kr e.kr kr mill mrd jr sr inc ltd co corp al pst stk a.s a/s
        utg""",
        """den det de en et ei han hun vi jeg du man dette denne disse her der da men og eller hvis når etter før på i
        for med av til fra som hva hvem hvorfor hvordan hvor ikke også så under over ved uten mellom ifølge siden
        fordi mens at sin hans hennes deres vår min er har hadde kan skal vil blir ble nå alle mange hver to""",
        ordinals=True,
    ),
    "fi": _words(
        """hra rva nti tri prof dos esim ks vrt ns n k nk ts t.s ml sis mukl s.o synt kuol toim ap ip fil maist St v
        vs em ko p.o m.l lat ven engl ruots saks jap ukr""",
        "nro no s ss kuv taul l kpl art p puh klo v n os §",
        "jne ym yms ynnä mm ks eaa eKr jKr e.kr j.kr co inc ltd corp oy oyj kpl min h alk jr sr milj mrd ao em",
        """se ne hän he minä sinä me te tämä nämä tuo siellä täällä tässä siinä silloin sitten mutta ja tai jos kun
        koska vaikka että mikä kuka miksi miten missä ei en on oli ovat olivat myös nyt niin kuitenkin lisäksi ennen
        jälkeen vuonna kaikki monet joka yksi kaksi""",
        ordinals=True,
    ),
    "pl": _words(
        """np tzn tj m.in prof dr hab mgr inż lek św Św bł ks ul al os p.o gen płk ppłk mjr kpt ppor chor sierż plut
        kpr dyr red wyd oprac tłum zob por wg tzw ww wym zw zm ur im ds dot śp pt jw bp abp kard adm prok sędz woj pow
        gm vs paraf nadkom podkom""",
        """nr art rys tab rozdz poz str s ss t tom cz ust pkt lit par ryc tel zał p z lp w pp vol nry sygn ok godz""",
        """itd itp etc r w rr in i.in tys mln mld gr godz min sek pn pd wsch zach jr sr co inc ltd corp ha cd br ub bm
        n.e p.n.e n.p.m al""",
        """to ten ta te ci on ona ono oni one my wy ja pan pani jego jej ich jest są był była było były będzie tam tu
        wtedy ale i a lub albo jeśli jeżeli kiedy gdy po przed w we na do dla z ze o od pod nad za przez przy jak co
        kto gdzie dlaczego nie tak też także już jeszcze tylko więc jednak ponieważ chociaż oraz podczas według dziś
        wczoraj jutro teraz wszyscy wiele każdy dwa się że""",
        ordinals=True,
    ),
    "cs": _words(
        """např tzv tj tzn popř příp mj resp ing ing.arch mgr bc mudr judr phdr rndr mvdr paeddr thdr doc prof dr sv
        ul nám tř gen plk pplk mjr kpt npor por red ed zvl zejm cca ca kupř srov vyd přel nar sl pí akad arch dipl odb
        vl vs t.j t.č t.zv ap""",
        "č čp čís č.p čl obr str s odst písm kap tab sv roč tel ods § vol r p l ř",
        """atd apod aj etc a.s s.r.o v.o.s o.p.s spol tis mil mld mil.kč kč hod min sek př.n.l n.l r st stol jr ml co
        inc ltd corp al atp m.n.m""",
        """to ten ta ti ty tento tato toto tyto on ona ono oni my vy já jeho její jejich je jsou byl byla bylo byli
        bude tam tu tady tehdy pak ale a i nebo jestliže pokud když po před v ve na do pro z ze o od pod nad za přes
        při jak co kdo kde proč ne ano také už ještě jen tak však protože ačkoli během podle dnes včera zítra nyní
        všichni mnoho každý dva se že k ke s""",
        ordinals=True,
    ),
    "sk": _words(
        """napr tzv tj t.j tzn popr príp resp ing mgr bc mudr judr phdr rndr mvdr paeddr doc prof dr sv ul nám gen plk
        pplk mjr kpt npor por red zvl cca ca porov vyd prel nar akad arch dipl odb vl vs zv t.č""",
        "č čís č.p čl obr str s ods písm kap tab zv roč tel § vol r p l",
        """atď atd apod a.i i.n aj etc a.s s.r.o v.o.s spol tis mil mld hod min sek pred.n.l n.l pr.kr r st stor jr ml
        co inc ltd corp al a.pod""",
        """to ten tá tie títo tento táto toto tieto on ona ono oni my vy ja jeho jej ich je sú bol bola bolo boli bude
        tam tu vtedy potom ale a aj alebo ak keď po pred v vo na do pre z zo o od pod nad za cez pri ako čo kto kde
        prečo nie áno tiež už ešte len tak však pretože hoci počas podľa dnes včera zajtra teraz všetci mnoho každý
        dva sa že k s""",
        ordinals=True,
    ),
    "ru": _words(
        """т.е т.к т.н т.о напр г-н г-жа г-да ул пр просп пл бул наб д корп обл р-н пос дер сел проф акад доц тов гр
        ген адм подп кап лейт ср св Св ред сост изд в.т.ч в.ч и.о врио зам зав нар засл чл.-корр чл к.э.н д.э.н к.т.н
        прибл кн букв лат англ фр греч итал исп яп""",
        "рис табл гл с стр п пп ст № т тт ч вып разд илл изд кн тел л лл кв д оф к подъезд см пункт род ум ок",
        """т.д т.п др пр г гг в вв тыс млн млрд трлн руб коп долл чел мин сек ч н.э до.н.э кв куб шт экз изд с стр итд
        итп р.х ул обл им рук полк""",
        """он она оно они мы вы я ты это этот эта эти тот та те его её ее их там тут здесь тогда потом но и а или если
        когда после до в во на для с со о об от под над за через при по из к ко у без между как что кто где почему не
        нет да также уже ещё еще только так однако хотя пока сегодня вчера завтра теперь сейчас все всё много каждый
        два был была было были есть по-этому затем кроме""",
    ),
    "uk": _words(
        """т.з напр ім вул просп пр-т пл пров бульв буд обл р-н смт проф акад доц тов гр ген кап ред упоряд пер в.о
        зам зав нар засл чл.-кор див пор св Св прибл т.зв лат англ нім фр""",
        "рис табл гл с стор п пп ст № т тт ч вип розд кн тел кв буд оф м мал",
        "т.д т.п т.ін ін р рр ст тис млн млрд грн коп дол чол хв сек год н.е до.н.е кв шт с обл вул полк",
        """він вона воно вони ми ви я ти це цей ця ці той та те ті його її їх там тут тоді потім але і й а або якщо
        коли після до в у на для з із зі о об від під над за через при по к без між як що хто де чому не ні так також
        уже вже ще тільки однак хоча поки сьогодні вчора завтра тепер зараз усі все багато кожен два був була було
        були є крім тобто тому втім отже""",
    ),
    "bg": _words(
        """т.е т.нар напр г-н г-жа г-ца д-р проф доц инж арх ул бул пл кв ж.к обл гр св Св ген полк кап акад чл изд вж
        срв ок прибл лат англ нем фр Вж серж""",
        "рис табл гл с стр чл ал т тт бр фиг изд кн тел № вх ет ап бл п",
        "т.н др пр г гг в хил млн млрд лв ст мин сек ч пр.н.е н.е сл.хр пр.хр и.др и.т.н ал",
        """той тя то те ние вие аз ти това този тази тези онзи неговият него нея там тук тогава после но и а или ако
        когато след преди в във на за с със о от под над през при по из до без между как какво кой къде защо не да
        също вече още само така обаче макар докато днес вчера утре сега всички много всеки два беше бяха е са има""",
    ),
    "el": _words(
        """κ κα κκ κ.κ δις δρ δηλ π.χ λ.χ βλ πρβλ καθ υπ αναπλ επίκ γεν ταγμ λοχ στρ αγ Αγ οδ λεωφ πλ τηλ φαξ ό.π αρχ
        συγγ""",
        """αρ αριθ άρθ αρθ σ σελ κεφ τ τόμ παρ εδ εικ πίν σχ τηλ στ ιαν φεβρ μαρτ απρ ιουν ιουλ αυγ σεπτ οκτ νοεμβρ
        δεκ""",
        "κ.λπ κλπ κ.ά κ.α κ.ο.κ κτλ κ.τ.λ μ.χ α.ε ε.π.ε μ.μ π.μ ευρ εκ εκατ δισ χλμ τ.μ εκδ α.ά η.π.α",
        """ο η το οι τα ένας μια μία ένα αυτός αυτή αυτό αυτοί αυτά εκείνος εμείς εσείς εγώ εσύ τότε εδώ εκεί αλλά και
        κι ή αν εάν όταν μετά πριν στο στη στην στον στα στις στους σε για με από προς χωρίς όπως τι ποιος πού πώς
        γιατί δεν δε μην ναι όχι επίσης ήδη ακόμη μόνο όμως ωστόσο ενώ σήμερα χθες αύριο τώρα όλοι όλα πολλοί κάθε δύο
        είναι ήταν έχει είχε του της των τον την θα να""",
    ),
    "ro": _words(
        """dl dna dra dlui d-l d-na d-ra d-lui dr prof conf lect ing arh av gen col lt cpt mr mrs sf Sf bd bdul b-dul
        șos jud mun acad pr ex de.ex cf cca aprox op ed red trad resp vs Sfta""",
        """nr art alin lit pct fig tab p pp pag cap vol t sect str tel ap sc et bl ian feb febr mar apr iun iul aug
        sep sept oct nov dec""",
        """etc ș.a ş.a ș.a.m.d ş.a.m.d s.a s.r.l inc ltd co corp jr î.hr d.hr î.e.n e.n a.m p.m mil mld al urm ș.u""",
        """el ea ei ele noi voi eu tu acesta aceasta acest această aceștia acestea acel acea un o unii unele în la de
        pe cu pentru din prin dar și sau dacă când după înainte ca cum ce cine unde nu da nici de-a deja încă numai
        așa însă deși lângă astăzi azi ieri mâine acum toți toate mulți fiecare doi este sunt era erau are au a fost
        se să astfel apoi""",
    ),
    "hu": _words(
        """dr prof ifj id özv br gr ún pl vö ld ill kb uo ui főv ált tkp Szt mb fn tvr Dr szerk ford szül vs okl ca""",
        "sz o old fej bek § tel evf köt kt jan febr márc ápr máj jún júl aug szept okt nov dec kb u",
        "stb kft zrt nyrt rt bt co inc ltd corp i.e i.sz u ú krt vm ker em db kb mp pc o jr al",
        """a az egy ez ezek azok ő ők mi ti én te itt ott akkor aztán de és vagy ha amikor után előtt mint hogy ki hol
        miért nem igen is már még csak így azonban bár mert ma tegnap holnap most minden sok két van volt voltak lesz
        ezt azt ennek annak amely aki ami s""",
        ordinals=True,
    ),
    "tr": _words(
        """dr prof doç yrd sn Sn alb yb bnb yzb tğm org korg gen op uzm müh mim Hz St mah mh cad cd sok sk blv bkz krş
        örn yakl haz çev ed M Gör Öğr Arş Av""",
        "no nu s sf sh şek tab böl md m c tel d k bkz t",
        "vb vs vd v.b v.s ltd şti a.ş aş inc co corp jr m.ö m.s i.ö i.s öö ös yy dk sn sa tl apt mah cad sok t.c",
        """bu şu o bir biz siz ben sen onlar bunlar bunun onun burada orada sonra ama fakat ve veya ya eğer ancak
        çünkü için gibi ne kim nerede neden nasıl değil evet hayır da de daha en çok her tüm bütün bugün dün yarın
        şimdi ayrıca böylece olarak göre iki ise""",
        ordinals=True,
    ),
    "ca": _words(
        "sr sra srs sres dr dra prof Mn Sta Sto p.ex ex cf aprox av avda pl Il·lm vs",
        "núm núms art arts fig p pp pàg pàgs vol cap t tel ed gen febr set oct nov des",
        "etc cia s.a s.l s.l.u inc ltd co corp a.c d.c jr ee.uu al",
        """el la els les l un una uns unes ell ella ells jo nosaltres aquest aquesta això però i o si quan després
        abans en de del dels al als a per amb sense com què qui on no ja també segons avui ahir demà va és són hi ha
        tots""",
        elides=True,
    ),
    "hr": _words(
        """npr tj tzv dr mr prof doc ing inž dipl gosp gđa gđica sv ul gen ur prir prev usp odn mag akad vlč mons otpr
        cca""",
        "br čl sl str st tab pogl sv t god tel § toč",
        "itd i.sl sl dr d.o.o d.d god g st pr.kr po.kr n.e mil mlrd tis kn min sat al co inc ltd corp jr",
        """to taj ta ti ovo ovaj ova on ona ono oni mi vi ja njegov njezin je su bio bila bilo bili tamo tu tada ali i
        a ili ako kad kada nakon prije u na do za iz o od pod nad kroz pri po kako što tko gdje zašto ne da također
        već još samo tako međutim iako danas jučer sutra sada svi mnogo svaki dva s sa""",
        ordinals=True,
    ),
    "hi": _words(
        "डॉ डा प्रो श्री कु पं ई मु सु",
        "सं पृ नं",
        "रु कि.मी कि.ग्रा",
        "",
    ),
    "ar": _words(
        "د أ.د م أ ص.ب",
        "ص ج ط م هـ رقم",
        "إلخ الخ ق.م ب.م",
        "",
    ),
    "he": _words(
        "ד\"ר פרופ' גב'",
        "עמ מס",
        "וכו",
        "",
    ),
}

# Languages that use the list of another one.
_LIKE = {
    "nb": "no", "nn": "no", "bs": "hr", "sr": "hr", "sh": "hr", "sl": "hr", "be": "ru", "mk": "bg", "gl": "pt",
    "af": "nl", "lb": "de", "gsw": "de", "mo": "ro",
}  # fmt: skip
_TWO_LETTERS = {
    "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it", "por": "pt", "nld": "nl",
    "dut": "nl", "pol": "pl", "ces": "cs", "cze": "cs", "slk": "sk", "slo": "sk", "rus": "ru", "ukr": "uk", "swe": "sv",
    "dan": "da", "nor": "no", "nob": "no", "nno": "no", "fin": "fi", "ell": "el", "gre": "el", "ron": "ro", "rum": "ro",
    "hun": "hu", "tur": "tr", "bul": "bg", "cat": "ca", "hrv": "hr", "srp": "sr", "slv": "sl", "hin": "hi", "ara": "ar",
    "heb": "he", "zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "hye": "hy", "arm": "hy",
}  # fmt: skip
_OTHER_ORDINALS = frozenset(["et", "lv", "lt", "is", "fo", "eu"])

# When the language is not known: abbreviations of some language that are ordinary words in none of them.
_UNKNOWN = _words(
    """mr mrs ms messrs dr drs prof sgt cpl cmdr Gen Capt Gov Sen Rep Rev St Ste Mt Ft cf viz approx vs ca resp incl
    excl hrn frl dipl ing habil vgl bzw sog ggf evtl inkl exkl zzgl bspw insb mme mlle Mgr env sra srta Sr Dra Sig Ud
    Uds Vd Vds lic dott avv spett egr dhr mevr mw bijv np tzn inż św ul např tzv popř napr tj mudr judr phdr rndr dvs
    jfr feks δηλ βλ напр ул проф акад просп обл доц ім вул д-р г-н örn bkz doç esim vrt""",
    """no nos nr n° nº num núm art arts fig figs p pp pg vol chap sec sect eq eqs abb abs bd kap s ss ziff tab tel págs
    pág pag cap fasc rys rozdz poz рис табл гл с стр č čl obr str blz afb odst nro sz §""",
    """etc usw ecc enz itd itp atd apod atď osv jne stb inc ltd corp llc plc bros jr gmbh avg dept univ assn str tel jan
    feb apr jun jul aug sep oct okt nov dec dez г гг р тыс млн млрд тис κλπ κτλ""",
    ordinals=True,
)


@lru_cache(64)
def abbreviations(language: str | None) -> Abbreviations:
    """The abbreviations of a language by its code ("en", "en-US", "pt_BR", "eng"). An unknown language has few."""
    code = (language or "").lower().replace("_", "-").partition("-")[0]
    code = _TWO_LETTERS.get(code, code)
    found = BY_LANGUAGE.get(_LIKE.get(code, code))
    if found is not None:
        return found
    known = BY_LANGUAGE.values()
    return replace(
        _UNKNOWN,
        never_end=_UNKNOWN.never_end | {word for entry in known for word in entry.never_end if "." in word},
        may_end=_UNKNOWN.may_end | {word for entry in known for word in entry.may_end if "." in word},
        starters=frozenset().union(*(entry.starters for entry in known)),
        ordinals=language is None or code in _OTHER_ORDINALS,
        guess=language is None,
    )


def likely(words: Sequence[str]) -> list[Abbreviations]:
    """The abbreviations of the languages to which most of these words belong, judged by their lists of starters."""
    counts = Counter(code for word in words for code in _languages_of().get(word.lower(), ()))
    most = max(counts.values(), default=0)
    return [BY_LANGUAGE[code] for code, count in counts.items() if count == most]


@lru_cache(1)
def _languages_of() -> dict[str, list[str]]:
    """Maps each starter to the languages that have it."""
    languages: dict[str, list[str]] = {}
    for code, entry in BY_LANGUAGE.items():
        for word in entry.starters:
            languages.setdefault(word, []).append(code)
    return languages
