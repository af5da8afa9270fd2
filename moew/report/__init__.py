"""The report of a finished search: one HTML file for a person who has to decide.

`collect` gathers everything as plain JSON values, `render` makes the page of them, `write_report` does both;
`told` is the verdict on what is handed out in words, `advice` what to do about it.
The page needs no network, no other file and nothing but a browser.
"""

from moew.report._collect import collect as collect
from moew.report._page import render as render
from moew.report._words import advice as advice
from moew.report._words import told as told
from moew.report._write import write_report as write_report
