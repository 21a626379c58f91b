"""From CUDA C and PTX to the model's programs: compilers, passes, and listings of their work. No GPU is made here."""
