"""Campaigns: many runs by worker processes, on this machine or on a Ray cluster.

``local_engine``, ``ray_engine``    ``run_all``: bring the records of many specs into a store
``scheduler``                       which run starts when, retries, progress; the same for both
``branch_plan``                     which runs share their first iterations, executed once
``campaign``                        progress of a campaign, as reported to the caller
``heartbeat``, ``failures``         progress and causes of failures, as files of the store
``resources``                       whether disk and memory suffice
``pool``                            workers that are watched and replaced
``process_pool``, ``worker``        a pool of local processes, and the code inside one
``ray_pool``, ``ray_actor``         a pool of Ray actors, and the code inside one
``messages``                        what a worker sends to its pool
"""
