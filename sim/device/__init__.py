"""A modelled GPU as programs see it: description, memory, modules, launches, and all that a launch leaves behind."""
