"""How errors describe an actor that has ended."""

import ray.exceptions

from actors.rpc.process_loss import describe_death

RAISED = """The actor died because of an error raised in its creation task, \x1b[36mray::Gateway()\x1b[39m (pid=1)
  File "sqlite_log.py", line 38, in __init__
    raise DsmsError("the log")
dsms.errors.DsmsError: the log 'd/gateway-0.log' cannot be opened: file is not a database"""


def test_an_actor_that_failed_at_its_start_is_described_by_its_error():
    error = ray.exceptions.ActorDiedError()
    error.error_msg, error._actor_init_failed = RAISED, True
    assert describe_death(error) == "the log 'd/gateway-0.log' cannot be opened: file is not a database"


def test_a_killed_actor_is_described_as_ended():
    assert describe_death(ray.exceptions.ActorDiedError()).startswith("its process has ended (The actor died")
