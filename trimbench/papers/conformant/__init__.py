"""Tables and figures of the NaCL paper (Khosravi et al., 2019)."""
