"""What a warehouse is after the process that wrote it was killed, its disk was full, or its files were damaged.

`story` is an endless sequence of steps (statements and epochs) whose n-th step and its outcome follow from a seed. A
`child` carries it out and is killed; its successor finds out from the warehouse how far the story had come and goes on.
`harness` starts, kills and examines the children: `python -m tests.faults.run --kills 200`.
"""
