"""One event ⇄ bytes, one column value ⇄ bytes, one protocol packet ⇄ bytes.

Everything here is pure and keeps no state: what a decoder must know of its surroundings is the frozen
`Format` of the file's FORMAT_DESCRIPTION event. Decoders and encoders are exact inverses.
"""
