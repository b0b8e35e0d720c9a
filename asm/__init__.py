"""Assembler, linker, disassembler, and the object and image formats."""
