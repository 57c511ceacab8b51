"""One small network in every format that is read, and where a test puts it."""

from __future__ import annotations

import gzip
from pathlib import Path

ERGO = """3
2 2 3
0
1  0
2  0 1

/* Probabilities */
2
 0.2 0.8
4
 0.0 1.0
 0.4 0.6
12
 0.0 0.1 0.9
 0.0 0.3 0.7
 0.1 0.5 0.4
 1.0 0.0 0.0

/* Names   */
rain
sprinkler
grass

/* Labels  */
yes no
on off
dry damp wet
"""
UAI = """BAYES
3
2 2 3
3
1 0
2 0 1
3 0 1 2

2
 0.2 0.8
4
 0.0 1.0 0.4 0.6
12
 0.0 0.1 0.9 0.0 0.3 0.7
 0.1 0.5 0.4 1.0 0.0 0.0
"""
# As in pgmpy#1073, it is the first parent that changes from row to row.
BIF = """// a lawn
network unknown {
  property version 1.1 ;
}
variable rain {
  type discrete [ 2 ] { yes, no };
  property position = (73, 165) ;
}
variable "sprinkler" { type discrete[2] { "on" "off" }; }
variable grass {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) {
  table 0.2, 0.8;
}
probability ( "sprinkler" | rain ) {
  table 0.0 0.4 1.0 0.6;
}
probability ( grass | rain, sprinkler ) { /* the last
  row */ default 1 0 0;
  (yes, on) 0.0, 0.1, 0.9;
  (no, on) 0.1, 0.5, 0.4;
  (yes, off) 0.0, 0.3, 0.7;
}
"""
XMLBIF = """<?xml version="1.0" encoding="US-ASCII"?>
<BIF VERSION="0.3">
<NETWORK>
<NAME>lawn</NAME>
<VARIABLE TYPE="nature">
  <NAME>rain</NAME>
  <OUTCOME>yes</OUTCOME>
  <OUTCOME>no</OUTCOME>
  <PROPERTY>position = (73, 165)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>sprinkler</NAME>
  <OUTCOME>on</OUTCOME>
  <OUTCOME>off</OUTCOME>
</VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>grass</NAME>
  <OUTCOME>dry</OUTCOME>
  <OUTCOME>damp</OUTCOME>
  <OUTCOME>wet</OUTCOME>
</VARIABLE>
<DEFINITION>
  <FOR>rain</FOR>
  <TABLE>0.2 0.8</TABLE>
</DEFINITION>
<DEFINITION>
  <FOR>sprinkler</FOR>
  <GIVEN>rain</GIVEN>
  <TABLE>0.0 1.0 0.4 0.6</TABLE>
</DEFINITION>
<DEFINITION>
  <FOR>grass</FOR>
  <GIVEN>rain</GIVEN>
  <GIVEN>sprinkler</GIVEN>
  <TABLE>
    0.0 0.1 0.9
    0.0 0.3 0.7
    0.1 0.5 0.4 <!-- dry -->
    1.0 0.0 0.0
  </TABLE>
</DEFINITION>
</NETWORK>
</BIF>
"""
TEXTS = {"erg": ERGO, "uai": UAI, "bif": BIF, "xmlbif": XMLBIF}


def write(folder: Path, ending: str, text: str) -> Path:
    path = folder / f"network.{ending}"
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    return path
