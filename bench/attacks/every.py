"""All programs: those of programs.py, and those of a topic, which has a file of its own."""

import breaker
import programs
import shared
import shares
import uploads

PROGRAMS = [*programs.PROGRAMS, *breaker.PROGRAMS, *shared.PROGRAMS, *shares.PROGRAMS, *uploads.PROGRAMS]
BY_NAME = {program.name: program for program in PROGRAMS}
