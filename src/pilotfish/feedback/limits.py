"""The caps on single fields of the feedback; how many of them are shown is `config.schema.FeedbackSettings`."""

MESSAGE_LIMIT = 500
"""Code points of one message. TypeScript explains a mismatch in up to some thousand; the cause stands at the front."""

CODE_LIMIT = 80
"""Code points of one code: the longest rule names of ESLint's plugins have about 60."""

PATH_LIMIT = 1024
"""Code points of one path. A path that is longer than this names no file that an agent could open by it."""
