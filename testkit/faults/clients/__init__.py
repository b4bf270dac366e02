"""Programs that use a cluster behind kustos and note what they were promised; each is one process.

Each is started with a JSON file of `Orders` and ends in good order when its stop file appears.
"""
