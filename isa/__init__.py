"""The instruction set, the machine description and the numbers: what every other stage stands on."""
