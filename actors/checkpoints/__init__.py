"""What a checkpoint of a deployment contains, where it is stored, and whether a changed plan can use it."""
