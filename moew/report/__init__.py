"""The report of a finished search: one HTML file for a person who has to decide.

`collect` gathers everything as plain JSON values, `render` makes the page of them, `write_report` does both;
`told` is the verdict on the selected model in words, `advice` what to do about it.
The page needs no network, no other file and nothing but a browser.
"""

from moew.report._collect import About as About
from moew.report._collect import collect as collect
from moew.report._page import render as render
from moew.report._page import write_report as write_report
from moew.report._plain import setting_text as setting_text
from moew.report._record import from_json as from_json
from moew.report._words import about_marks as about_marks
from moew.report._words import advice as advice
from moew.report._words import marked_name as marked_name
from moew.report._words import told as told
