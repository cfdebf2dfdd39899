"""The protocol's vocabulary as light structs: fast to import, fast to decode, strict where it matters."""
