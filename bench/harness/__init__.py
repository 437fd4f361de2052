"""What every benchmark uses: projects and servers, a user's home, clients, processes, numbers, tables."""
