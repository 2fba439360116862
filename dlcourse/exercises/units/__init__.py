"""One exercise, one module: what is asked in the notebook, answered rightly once, and wrongly as people do."""
