"""Runs dsms on Ray: host actors hold the operators, and the unchanged engine of `dsms` decides what runs next."""
