"""How large a frame of the wire protocol may be: used by the `[live]` table and by the protocol itself."""

FRAME_LIMIT_BYTES = 64 * 1024 * 1024  # by default
FRAME_LIMIT_MAX_BYTES = 2**31 - 8  # offsets into a frame are int32, and a frame is padded to eight bytes
UNAUTHENTICATED_FRAME_LIMIT_BYTES = 64 * 1024  # before the client has sent its hello; no `frame` setting may be lower
