"""What is said of an actor that is gone."""

import ray.exceptions

from actors.parts import ending

RAISED = """The actor died because of an error raised in its creation task, \x1b[36mray::Gateway()\x1b[39m (pid=1)
  File "sqlite_log.py", line 38, in __init__
    raise DsmsError("the log")
dsms.errors.DsmsError: the log 'd/gateway-0.log' cannot be opened: file is not a database"""


def test_who_failed_as_it_began_says_why():
    error = ray.exceptions.ActorDiedError()
    error.error_msg, error._actor_init_failed = RAISED, True
    assert ending(error) == "the log 'd/gateway-0.log' cannot be opened: file is not a database"


def test_who_was_killed_has_ended():
    assert ending(ray.exceptions.ActorDiedError()).startswith("its process has ended (The actor died")
