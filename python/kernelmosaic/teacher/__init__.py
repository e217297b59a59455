"""A scripted teacher: answers generated tasks over an OpenAI-compatible endpoint.

It knows the family's right solutions, makes realistic mistakes at a seeded rate, and repairs
them when the feedback names the fault. What it writes is synthetic: its model is called
`kernelmosaic-teacher`, and every record says so.
"""

MODEL = "kernelmosaic-teacher"
