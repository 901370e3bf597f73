"""The read side: query → mask → masked cellset, with the stamp that the last guard asks for."""
