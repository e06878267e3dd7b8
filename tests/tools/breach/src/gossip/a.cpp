// breach: gossip is not a room
