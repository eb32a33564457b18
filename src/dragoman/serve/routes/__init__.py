"""The service's routes, one file for each API. Takes requests that passed security.py; gives the service's answers in
the form of that API.
"""
