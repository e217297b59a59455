# Makes the relocatable archive. Sourced by ./dev.
# shellcheck shell=bash
