# Reads the allocator's status. Fails unless the job `keras` is managed by its losses: they are known, its work
# left follows from them, and it is before the job `flat`, which has much more.
import json
import sys

jobs = {job["job"]: job for job in json.load(sys.stdin)["jobs"]}
keras, flat = jobs["keras"], jobs["flat"]
known = keras["standing"] == "managed" and 0 < keras["last_loss"] < 4 and keras["step"] > 0
sys.exit(not (known and keras["work_left"] < flat["work_left"] / 2))
