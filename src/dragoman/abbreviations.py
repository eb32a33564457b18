"""Words whose full stop ends no sentence, in the languages that people try first.

All of them at once: the language of a text is often not known, and what is an abbreviation in one language is seldom a
last word in another.
"""

_NEVER_END = """
mr mrs ms mx messrs dr drs prof rev hon gen col maj capt cmdr lt sgt cpl gov sen rep pres st ste mt ft
e.g i.e cf viz approx vs v ca c. resp esp incl excl ed eds trans
hr hrn frl dipl ing habil z.b d.h u.a u.ä o.ä u.u i.d.r s.o s.u vgl bzw sog ggf evtl inkl exkl zzgl bspw insb
z d u o i.a m.e n.b v.a a.d geb gest verh
m mm mme mlle mgr me p.ex ex c.-à-d av apr env
sr sra srta dra ud uds vd vds p.ej ej d da dª lic ing
sig dott dott.ssa avv arch on spett egr gent
dhr mevr mw drs ir bijv m.a.w d.w.z z.g.n o.a i.p.v t.o.v
np tzn tj m.in prof inż mgr św ul
т.е т.к т.н т.д т.п напр г гг им ул стр проф акад тов
např tzv tj popř mj resp
ex.vis t.ex bl.a d.v.s s.k dvs f.eks bl.a
δηλ π.χ κ. κα
"""
_BEFORE_NUMBERS = """
no nos nr n° nº num núm art arts fig figs p pp pg vol ch chap sec sect eq eqs ex abb abs bd kap s ss ziff tab tel t
págs pág cap fasc p.es rys rozdz poz рис табл гл č č.p obr čl
jan feb mar apr jun jul aug sep sept oct okt nov dec dez janv févr avr juil août déc ene abr ago dic gen mag giu lug ott
"""
_MAY_END = """
etc usw u.s.w ecc inc ltd co corp llc plc bros jr sr al et.al ph.d m.d b.a m.a a.m p.m u.s u.k e.u d.c i.e.s
enz itd itp atd и.т.д sa sarl gmbh min max avg dept univ assn est str tel
jan feb mar apr jun jul aug sep sept oct okt nov dec dez
"""
# Words that begin a sentence far more often than they follow an abbreviation inside one.
_STARTERS = """
the a an this that these those he she it they we you i his her its their our my your there here then but and so if when
while after before in on at for from with as although however what who why how where not no yes
der die das ein eine einer er sie es wir ihr ich sein ihre dies diese dieser dieses dort hier dann aber und wenn als
nach vor im am auf für mit wie was wer warum nicht doch auch
le la les un une des il elle on nous vous ils elles je ce cet cette ces son sa ses leur mais et si quand après avant
dans pour avec comme puis
el los las una unos unas él ella ellos ellas yo nosotros este esta estos estas su sus pero y si cuando después antes en
para con como
il lo gli uno una egli ella essi io noi questo questa ma e se quando dopo prima nel per con come
de het een hij zij ze wij we ik dit dat deze die maar en als toen na voor op met
он она оно они мы вы я это этот эта эти но и если когда после до в на для с как
"""
# Languages that write "3." for "third".
_ORDINALS = "de da nb nn no fi et lv cs sk sl hr sr bs hu pl tr eu is fo lb"

NEVER_END = frozenset(_NEVER_END.split())
BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
MAY_END = frozenset(_MAY_END.split())
STARTERS = frozenset(_STARTERS.split())
ORDINALS = frozenset(_ORDINALS.split())
