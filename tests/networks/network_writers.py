"""Writers for the formats that the package only reads; every digit is kept."""

from __future__ import annotations

import itertools
from xml.sax.saxutils import escape

import numpy as np

import trimbench as tb


def encode_ergo(network: tb.BayesianNetwork) -> str:
    index = {node: i for i, node in enumerate(network.nodes)}
    lines = [str(len(index)), " ".join(str(network.cardinality(node)) for node in network.nodes)]
    lines += [
        " ".join(map(str, [len(above), *(index[v] for v in above)])) for above in map(network.parents, network.nodes)
    ]
    lines += ["", "/* Probabilities */"]
    lines += [_counted(network.table(node)) for node in network.nodes]
    lines += ["/* Names */", *network.nodes]
    lines += ["/* Labels */", *(" ".join(network.states(node)) for node in network.nodes)]
    return "\n".join(lines) + "\n"


def encode_uai(network: tb.BayesianNetwork) -> str:
    """The tables in the reverse of the order of the nodes."""
    index = {node: i for i, node in enumerate(network.nodes)}
    nodes = network.nodes[::-1]
    lines = ["BAYES", str(len(index)), " ".join(str(network.cardinality(node)) for node in network.nodes)]
    lines.append(str(len(index)))
    lines += [
        " ".join(map(str, [len(network.parents(node)) + 1, *(index[v] for v in (*network.parents(node), node))]))
        for node in nodes
    ]
    lines += [_counted(network.table(node)) for node in nodes]
    return "\n".join(lines) + "\n"


def _counted(table: np.ndarray) -> str:
    rows = (" ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
    return "\n".join([str(table.size), *rows])


def encode_bif(network: tb.BayesianNetwork) -> str:
    """Every second node as one table, the others by rows, the commonest of them the default."""
    lines = ['network "a // name" {', "  property x /* y */ = 1, 2 ;", "}"]
    for node in network.nodes:
        states = ", ".join(f'"{state}"' for state in network.states(node))
        lines += [f'variable "{node}" {{', f"  type discrete [ {network.cardinality(node)} ] {{ {states} }};", "}"]
    for i, node in enumerate(network.nodes):
        bar = " | " if network.parents(node) else ""
        parents = ", ".join(f'"{parent}"' for parent in network.parents(node))
        lines.append(f'probability ( "{node}"{bar}{parents} ) {{ property y; // {i}')
        table = network.table(node)
        if i % 2 == 0:
            lines.append(f"  table {', '.join(map(repr, np.moveaxis(table, -1, 0).ravel().tolist()))} ;")
        else:
            keys = list(itertools.product(*map(network.states, network.parents(node))))
            rows = [", ".join(map(repr, row)) for row in table.reshape(len(keys), -1).tolist()]
            default = max(rows, key=rows.count)
            for key, row in zip(keys, rows, strict=True):
                if row != default:
                    lines.append(f"  ({', '.join(map(_quoted, key))}) {row};")
            lines.append(f"  default {default};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    return f'"{name}"'


def encode_xmlbif(network: tb.BayesianNetwork) -> str:
    lines = ['<?xml version="1.0"?>', "<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>", '<BIF VERSION="0.3">']
    lines += ["<NETWORK>", "<NAME>name</NAME>", "<PROPERTY>a <B>b</B></PROPERTY>"]
    for node in network.nodes:
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME> {escape(node)} </NAME>"]
        lines += [f"  <OUTCOME>{escape(state)}</OUTCOME>" for state in network.states(node)]
        lines.append("</VARIABLE>")
    for node in network.nodes:
        lines += ["<DEFINITION>", f"  <FOR>{escape(node)}</FOR>"]
        lines += [f"  <GIVEN>{escape(parent)}</GIVEN>" for parent in network.parents(node)]
        lines.append(f"  <TABLE>{' '.join(map(repr, network.table(node).ravel().tolist()))}")
        lines += ["  <!-- a comment --></TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"
