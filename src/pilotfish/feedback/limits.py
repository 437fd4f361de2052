"""The caps on single fields of the feedback; how many of them are shown is `config.schema.FeedbackSettings`."""

MESSAGE_LIMIT = 500
"""Code points of one message. TypeScript writes up to some thousand; the cause comes first."""

CODE_LIMIT = 80
"""Code points of one code: the longest rule names of ESLint's plugins have about 60."""

PATH_LIMIT = 1024
"""Code points of one path: an agent could not use a longer one."""

SOURCE_BYTES = 80
"""Of a source line that is shown with a finding: enough to know the place without reading the file."""

ERROR_BYTES = 200
"""One finding of a worklist with its source line. Longer messages of checkers repeat in other words what is wrong."""
